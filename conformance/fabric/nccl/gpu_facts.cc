// gpu_facts: what a run on this machine's GPU would run on, and the environment that orders its
// launches.
//
// Exit status: 0, or 1 without a usable GPU.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>

#include "conformance/fabric/nccl/cuda_gpu.h"

extern char** environ;

namespace {

// 22809: 2.28.9. 13000: 13.0.
std::string NcclText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}
std::string CudaText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// What decides in which order, and how many at a time, kernels start; with CUDA's defaults (CUDA
// Programming Guide, "CUDA Environment Variables").
void PrintEnvironment() {
  const char* const launch[][2] = {{"CUDA_DEVICE_MAX_CONNECTIONS", "8"},
                                   {"CUDA_LAUNCH_BLOCKING", "0"},
                                   {"CUDA_MODULE_LOADING", "LAZY"},
                                   {"CUDA_SCALE_LAUNCH_QUEUES", "1x"}};
  for (const auto& [name, standard] : launch) {
    const char* value = std::getenv(name);
    std::cout << name << ": " << (value != nullptr ? value : std::string(standard) + " (default)")
              << "\n";
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "NCCL_", 5) == 0) std::cout << *entry << "\n";
  }
}

}  // namespace

int main() {
  const std::string why = shardproof::WhyNoDevice(0);
  if (!why.empty()) {
    std::cout << "no GPU: " << why << "\n";
    return 1;
  }
  try {
    const auto gpu = shardproof::OpenCudaGpu({});
    const shardproof::GpuVersions versions = gpu->Versions();
    std::cout << "device: " << versions.device << "\n"
              << "driver's CUDA: " << CudaText(versions.cuda_driver) << "\n"
              << "CUDA runtime: " << CudaText(versions.cuda_runtime) << "\n"
              << "NCCL: " << NcclText(versions.nccl) << "\n";
    PrintEnvironment();
  } catch (const std::exception& error) {
    std::cout << "the GPU cannot be used: " << error.what() << "\n";
    return 1;
  }
}
