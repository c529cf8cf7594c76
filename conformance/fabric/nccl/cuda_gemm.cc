#include "conformance/fabric/nccl/cuda_gemm.h"

#include <stdexcept>
#include <string>

#include "conformance/fabric/nccl/cuda_round.h"
#include "conformance/fabric/nccl/cuda_status.h"

namespace shardproof {

namespace {

// As stored: rows x columns, from a row to the next, from a matrix of the batch to the next.
struct Stored {
  int64_t rows, columns, stride, step;
};

Stored StoredA(const Gemm& g) {
  const int64_t rows = g.a_transposed ? g.k : g.m, columns = g.a_transposed ? g.m : g.k;
  return {rows, columns, g.a_stride != 0 ? g.a_stride : columns, g.a_step};
}

Stored StoredB(const Gemm& g) {
  const int64_t rows = g.b_transposed ? g.n : g.k, columns = g.b_transposed ? g.k : g.n;
  return {rows, columns, g.b_stride != 0 ? g.b_stride : columns, g.b_step};
}

int64_t StrideC(const Gemm& g) { return g.c_stride != 0 ? g.c_stride : g.n; }

// cuBLAS runs the batch at once: each product needs a C of its own, behind the one before or, as
// heads of attention lie, beside it in the same rows.
void RequireApart(const Gemm& g) {
  const bool behind = g.c_step >= (g.m - 1) * StrideC(g) + g.n;
  const bool beside = g.c_step >= g.n && StrideC(g) >= (g.batch - 1) * g.c_step + g.n;
  if (g.batch <= 1 || behind || beside) return;
  throw std::invalid_argument("a batch of " + std::to_string(g.batch) + " products of " +
                              std::to_string(g.m) + " x " + std::to_string(g.n) + " with c_step " +
                              std::to_string(g.c_step) + ": they overlap in C; give each its own");
}

// cuBLAS is column-major: it reads a row-major matrix as its transpose. So C^T = B^T A^T is asked
// for, B first.
void Call(cublasHandle_t handle, const Gemm& g, const void* a, const Stored& a_stored,
          const void* b, const Stored& b_stored, cudaDataType_t operands,
          cublasComputeType_t compute) {
  const float one = 1,
              zero = 0;  // scalars on the host (CUBLAS_POINTER_MODE_HOST), read before the return
  const float* beta = g.add ? &one : &zero;  // with zero, C is not read
  const cublasOperation_t transpose_b = g.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t transpose_a = g.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  if (g.batch == 1) {
    CheckBlas(cublasGemmEx_64(handle, transpose_b, transpose_a, g.n, g.m, g.k, &one, b, operands,
                              b_stored.stride, a, operands, a_stored.stride, beta, g.c, CUDA_R_32F,
                              StrideC(g), compute, CUBLAS_GEMM_DEFAULT),
              "cublasGemmEx_64");
    return;
  }
  CheckBlas(cublasGemmStridedBatchedEx_64(
                handle, transpose_b, transpose_a, g.n, g.m, g.k, &one, b, operands, b_stored.stride,
                b_stored.step, a, operands, a_stored.stride, a_stored.step, beta, g.c, CUDA_R_32F,
                StrideC(g), g.c_step, g.batch, compute, CUBLAS_GEMM_DEFAULT),
            "cublasGemmStridedBatchedEx_64");
}

// A product without summands is zero. Rare: one call a row will do.
void FillWithZero(Queue& queue, const Gemm& g) {
  if (g.add) return;
  const auto row_bytes = static_cast<uint64_t>(g.n) * sizeof(float);
  for (int64_t p = 0; p < g.batch; ++p) {
    for (int64_t i = 0; i < g.m; ++i) {
      queue.Fill(reinterpret_cast<std::byte*>(g.c + p * g.c_step + i * StrideC(g)), 0, row_bytes);
    }
  }
}

}  // namespace

CudaGemm::CudaGemm(GemmMode mode) : mode_(mode) {
  CheckBlas(cublasCreate(&handle_), "cublasCreate");
  // Sums are made in fp32, never in the narrower type of the operands, and without atomics.
  const auto math = static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                              CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  CheckBlas(cublasSetMathMode(handle_, math), "cublasSetMathMode");
  CheckBlas(cublasSetAtomicsMode(handle_, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode");
  CheckBlas(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode");
}

CudaGemm::~CudaGemm() { cublasDestroy(handle_); }

void CudaGemm::Multiply(Queue& queue, std::byte* workspace, const Gemm& gemm) {
  if (gemm.m <= 0 || gemm.n <= 0 || gemm.batch <= 0) return;
  RequireApart(gemm);
  if (gemm.k <= 0) return FillWithZero(queue, gemm);
  // The stream first: setting it takes the workspace away again (cuBLAS, cublasSetStream).
  CheckBlas(cublasSetStream(handle_, static_cast<cudaStream_t>(queue.native())), "cublasSetStream");
  CheckBlas(cublasSetWorkspace(handle_, workspace, kWorkspaceBytes), "cublasSetWorkspace");
  if (mode_ == GemmMode::kBf16) {
    MultiplyBf16(queue, gemm);
  } else {
    MultiplyFp32(gemm);
  }
}

void CudaGemm::MultiplyFp32(const Gemm& g) {
  Call(handle_, g, g.a, StoredA(g), g.b, StoredB(g), CUDA_R_32F,
       mode_ == GemmMode::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_PEDANTIC);
}

void CudaGemm::MultiplyBf16(Queue& queue, const Gemm& g) {
  // An operand that all products share (step 0) is rounded once.
  const auto round = [&](const float* from, const Stored& s, uint16_t* to) {
    RoundToBf16(queue, from, s.rows, s.columns, s.stride, s.step == 0 ? 1 : g.batch, s.step, to);
    return Stored{s.rows, s.columns, s.columns, s.step == 0 ? 0 : s.rows * s.columns};
  };
  const Stored a = StoredA(g), b = StoredB(g);
  const Scratch<uint16_t> a_rounded(queue, a.rows * a.columns * (a.step == 0 ? 1 : g.batch));
  const Scratch<uint16_t> b_rounded(queue, b.rows * b.columns * (b.step == 0 ? 1 : g.batch));
  const Stored a_dense = round(g.a, a, a_rounded.get()), b_dense = round(g.b, b, b_rounded.get());
  Call(handle_, g, a_rounded.get(), a_dense, b_rounded.get(), b_dense, CUDA_R_16BF,
       CUBLAS_COMPUTE_32F);
}

}  // namespace shardproof
