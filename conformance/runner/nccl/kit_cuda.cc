// Linked where the CUDA toolkit is: NcclFabric on a device.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "conformance/fabric/nccl/cuda_gpu.h"
#include "conformance/fabric/nccl/nccl_fabric.h"
#include "conformance/host/cuda/device_executor.h"
#include "conformance/runner/nccl/environment.h"
#include "conformance/runner/nccl/kit.h"

namespace shardproof {
namespace {

int64_t Microseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

MachineEnd::Cause CauseOf(Watchdog::Cause cause) {
  switch (cause) {
    case Watchdog::Cause::kNone:
      return MachineEnd::Cause::kItself;  // aborted without the watchdog
    case Watchdog::Cause::kEnded:
      return MachineEnd::Cause::kTold;
    case Watchdog::Cause::kBroken:
      return MachineEnd::Cause::kBroken;
    case Watchdog::Cause::kStalled:
      return MachineEnd::Cause::kHung;
  }
  return MachineEnd::Cause::kItself;
}

// The watchdog asks for the time again and again while the host waits.
NcclOptions OptionsOf(const CaseMachineOptions& options) {
  NcclOptions nccl;
  nccl.stall_seconds = options.stall_seconds;
  nccl.poison = options.poison;
  nccl.now_us = [waiting = options.waiting] {
    if (waiting) waiting();
    return Microseconds();
  };
  return nccl;
}

class CudaCase : public CaseMachine {
 public:
  CudaCase(Gpu& gpu, PinnedPool& pinned, Rendezvous& rendezvous, const CaseMachineOptions& options)
      : fabric_(std::make_unique<NcclFabric>(gpu, pinned, rendezvous, OptionsOf(options))) {}
  Fabric& fabric() override { return *fabric_; }
  std::shared_ptr<Executor> MakeExecutor() override {
    executor_ = std::make_shared<DeviceExecutor>(
        [this](int32_t stream) -> Queue& { return fabric_->QueueOf(stream); });
    return executor_;
  }
  int32_t Stamp(int32_t stream) override { return fabric_->Stamp(stream); }
  double MillisecondsBetween(int32_t from, int32_t to) override {
    return fabric_->MillisecondsBetween(from, to);
  }
  MachineEnd End() override {
    fabric_->Close();  // meets the others to end its communicators; does nothing after an abort
    MachineEnd end;
    end.mismatches = fabric_->mismatches();
    end.reusable = !fabric_->aborted();
    if (fabric_->aborted()) {
      end.cause = CauseOf(fabric_->end().cause);
      end.reason = fabric_->end().reason;
      end.pending = fabric_->end().pending;
      return end;  // what is on the device goes with the process
    }
    fabric_.reset();  // all device work is done
    executor_.reset();
    return end;
  }

 private:
  std::unique_ptr<NcclFabric> fabric_;
  std::shared_ptr<DeviceExecutor> executor_;
};

GemmMode ModeOf(const std::string& name) {
  return name == "tf32" ? GemmMode::kTf32 : name == "bf16" ? GemmMode::kBf16 : GemmMode::kFp32;
}

std::string Version(int version, int major, int minor) {  // 13000 with 1000, 10: "13.0"
  return std::to_string(version / major) + "." + std::to_string(version % major / minor);
}

class CudaMachine : public RankMachine {
 public:
  CudaMachine(const RankMachineOptions& options, int device, std::unique_ptr<Gpu> gpu)
      : options_(options), device_(device), gpu_(std::move(gpu)), pinned_(*gpu_) {}
  std::vector<std::string> Facts() override {
    const GpuVersions v = gpu_->Versions();
    return {"device " + std::to_string(device_) + ": " + v.device + ", CUDA " +
                Version(v.cuda_runtime, 1000, 10) + ", driver for CUDA " +
                Version(v.cuda_driver, 1000, 10) + ", NCCL " + Version(v.nccl, 10000, 100) + "." +
                std::to_string(v.nccl % 100),
            "environment of rank " + std::to_string(options_.rank) + ": " +
                EnvironmentFact(std::getenv),
            "products: " + options_.gemm};
  }
  std::unique_ptr<CaseMachine> Begin(Rendezvous& rendezvous,
                                     const CaseMachineOptions& options) override {
    return std::make_unique<CudaCase>(*gpu_, pinned_, rendezvous, options);
  }

 private:
  RankMachineOptions options_;
  int device_;
  std::unique_ptr<Gpu> gpu_;
  PinnedPool pinned_;
};

std::unique_ptr<RankMachine> Open(const RankMachineOptions& options) {
  // Read when CUDA is first used (CUDA Programming Guide, "Lazy Loading"), which is below. Why
  // eager: cuda_gpu.h.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  RankPlace place{options.rank, options.local_rank, options.local_ranks, 0, 0};
  const cudaError_t status = cudaGetDeviceCount(&place.devices);
  if (status != cudaSuccess || place.devices == 0) {
    throw std::runtime_error(std::string("no CUDA device: ") + cudaGetErrorString(status));
  }
  if (ncclGetVersion(&place.nccl) != ncclSuccess)
    throw std::runtime_error("NCCL does not tell its version");
  for (const auto& [name, value] : NcclVariables(place, std::getenv))
    setenv(name.c_str(), value.c_str(), 1);
  CudaGpuOptions gpu;
  gpu.device = DeviceOf(place);
  gpu.gemm = ModeOf(options.gemm);
  return std::make_unique<CudaMachine>(options, gpu.device, OpenCudaGpu(gpu));
}

}  // namespace

NcclKit CudaKit() {
  NcclKit kit;
  kit.open = Open;
  return kit;
}

}  // namespace shardproof
