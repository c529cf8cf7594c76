#include "conformance/fabric/nccl/cuda_status.h"

#include "conformance/fabric/nccl/gpu.h"

namespace shardproof {

namespace {

[[noreturn]] void Throw(std::string_view call, std::string_view about, const std::string& status) {
  std::string what(call);
  if (!about.empty()) what.append(" on ").append(about);
  throw GpuError(what, status);
}

}  // namespace

std::string ToText(cudaError_t status) {
  return std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
}

std::string ToText(cublasStatus_t status) {
  return std::string(cublasGetStatusName(status)) + " (" + cublasGetStatusString(status) + ")";
}

std::string ToText(ncclResult_t status) {
  std::string text = "ncclResult_t " + std::to_string(static_cast<int>(status)) + " (" +
                     ncclGetErrorString(status) + ")";
  // "Last error" of the process, whatever communicator had it (nccl.h): null is as good as any.
  const char* last = ncclGetLastError(nullptr);
  if (last != nullptr && *last != '\0') text.append(": ").append(last);
  return text;
}

void CheckCuda(cudaError_t status, std::string_view call, std::string_view about) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  Throw(call, about, ToText(status));
}

bool IsDone(cudaError_t status, std::string_view call, std::string_view about) {
  if (status == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());  // kept there like an error
    return false;
  }
  CheckCuda(status, call, about);
  return true;
}

void CheckBlas(cublasStatus_t status, std::string_view call, std::string_view about) {
  if (status != CUBLAS_STATUS_SUCCESS) Throw(call, about, ToText(status));
}

void CheckNccl(ncclResult_t status, std::string_view call, std::string_view about) {
  if (status != ncclSuccess && status != ncclInProgress) Throw(call, about, ToText(status));
}

}  // namespace shardproof
