// cuda_status.h: what did CUDA, cuBLAS or NCCL answer, in words?
//
// Every status goes through these. call: the function's name; about: what it was about, or nothing.
#pragma once
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>
#include <string_view>

namespace shardproof {

// "cudaErrorNoDevice (no CUDA-capable device is detected)"
std::string ToText(cudaError_t status);
std::string ToText(cublasStatus_t status);
// With NCCL's own account of its last error, if it has one.
std::string ToText(ncclResult_t status);

// Throw GpuError unless the call succeeded. CheckCuda takes the error off the runtime too, so that
// it is not found again as the next kernel's. ncclInProgress is success: the communicator says
// later how it went.
void CheckCuda(cudaError_t status, std::string_view call, std::string_view about = {});
void CheckBlas(cublasStatus_t status, std::string_view call, std::string_view about = {});
void CheckNccl(ncclResult_t status, std::string_view call, std::string_view about = {});
// Of a query: false if cudaErrorNotReady, true if success; throws otherwise.
bool IsDone(cudaError_t status, std::string_view call, std::string_view about = {});

}  // namespace shardproof
