// Products as cuBLAS's documents describe them: column-major, checked arguments, plain loops.
#include <cublas_v2.h>

#include <bit>
#include <cstdint>

#include "conformance/fabric/nccl/cuda_round.h"
#include "conformance/fabric/nccl/fake_cuda_for_test.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
};

namespace {

using shardproof::fake::Push;

struct Matrix {
  const void* data;
  bool bf16, transposed;
  int64_t ld, step;

  // Row i, column j of op(matrix), of product p.
  float At(int64_t p, int64_t i, int64_t j, bool cut) const {
    const int64_t place = p * step + (transposed ? j + i * ld : i + j * ld);
    if (bf16)
      return std::bit_cast<float>(static_cast<uint32_t>(static_cast<const uint16_t*>(data)[place])
                                  << 16);
    const float value = static_cast<const float*>(data)[place];
    // TF32 keeps 10 bits behind the leading one.
    return cut && value == value ? std::bit_cast<float>(std::bit_cast<uint32_t>(value) & ~0x1fffu)
                                 : value;
  }
};

struct Product {
  int64_t m, n, k;
  float alpha, beta;
  Matrix a, b;
  float* c;
  int64_t ldc, step_c, batch;
  bool tf32;

  void Run() const {
    for (int64_t p = 0; p < batch; ++p) {
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i < m; ++i) {
          float sum = 0;
          for (int64_t l = k; l-- > 0;) sum = sum + a.At(p, i, l, tf32) * b.At(p, l, j, tf32);
          float& out = c[p * step_c + i + j * ldc];
          out = beta == 0 ? alpha * sum : alpha * sum + beta * out;
        }
      }
    }
  }
};

bool Supported(cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cublasComputeType_t compute) {
  if (a != b || c != CUDA_R_32F) return false;
  if (a == CUDA_R_16BF)
    return compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC;
  return a == CUDA_R_32F &&
         (compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
          compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

}  // namespace

// On the fake there are no kernels.
void shardproof::RoundToBf16(Queue& queue, const float* from, int64_t rows, int64_t columns,
                             int64_t stride, int64_t batch, int64_t step, uint16_t* to) {
  Push(static_cast<cudaStream_t>(queue.native()), [=] {
    for (int64_t p = 0; p < batch; ++p) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          const auto bits = std::bit_cast<uint32_t>(from[p * step + r * stride + c]);
          to[(p * rows + r) * columns + c] =
              static_cast<uint16_t>(bits >> 16);  // exact: 8 bits are all there are
        }
      }
    }
  });
}

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return *handle = new cublasContext, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t) {
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusName(cublasStatus_t) { return "CUBLAS_STATUS"; }
const char* cublasGetStatusString(cublasStatus_t) { return "what the fake says"; }
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  *handle = {stream, nullptr};  // "unconditionally resets the workspace"
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t) {
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  handle->workspace = workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t ta,
                                             cublasOperation_t tb, int64_t m, int64_t n, int64_t k,
                                             const void* alpha, const void* a, cudaDataType at,
                                             int64_t lda, long long step_a, const void* b,
                                             cudaDataType bt, int64_t ldb, long long step_b,
                                             const void* beta, void* c, cudaDataType ct,
                                             int64_t ldc, long long step_c, int64_t batch,
                                             cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (!Supported(at, bt, ct, compute)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool n_a = ta == CUBLAS_OP_N, n_b = tb == CUBLAS_OP_N;
  if (lda < (n_a ? m : k) || ldb < (n_b ? k : n) || ldc < m || handle->workspace == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  const Product product{m,
                        n,
                        k,
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta),
                        {a, at == CUDA_R_16BF, !n_a, lda, step_a},
                        {b, bt == CUDA_R_16BF, !n_b, ldb, step_b},
                        static_cast<float*>(c),
                        ldc,
                        step_c,
                        batch,
                        compute == CUBLAS_COMPUTE_32F_FAST_TF32};
  Push(handle->stream, [product] { product.Run(); });
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                               int64_t m, int64_t n, int64_t k, const void* alpha, const void* a,
                               cudaDataType at, int64_t lda, const void* b, cudaDataType bt,
                               int64_t ldb, const void* beta, void* c, cudaDataType ct, int64_t ldc,
                               cublasComputeType_t compute, cublasGemmAlgo_t algo) {
  return cublasGemmStridedBatchedEx_64(handle, ta, tb, m, n, k, alpha, a, at, lda, 0, b, bt, ldb, 0,
                                       beta, c, ct, ldc, 0, 1, compute, algo);
}

}  // extern "C"
