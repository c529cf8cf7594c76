#include "conformance/fabric/nccl/cuda_gpu.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "conformance/fabric/nccl/cuda_comms.h"
#include "conformance/fabric/nccl/cuda_queue.h"
#include "conformance/fabric/nccl/cuda_status.h"
#include "conformance/fabric/nccl/id_table.h"
#include "conformance/fabric/nccl/patience.h"

namespace shardproof {

namespace {

// Attributes and why: gpu.h, Gpu::Alloc.
cudaMemPool_t MakePool(int device) {
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;  // the only type of device memory
  props.handleTypes = cudaMemHandleTypeNone;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = device;
  cudaMemPool_t pool = nullptr;
  CheckCuda(cudaMemPoolCreate(&pool, &props), "cudaMemPoolCreate");
  const std::pair<cudaMemPoolAttr, int> reuse[] = {
      {cudaMemPoolReuseFollowEventDependencies, 1},
      {cudaMemPoolReuseAllowOpportunistic, 1},
      {cudaMemPoolReuseAllowInternalDependencies, 0},
  };
  for (auto [attribute, value] : reuse) {
    CheckCuda(cudaMemPoolSetAttribute(pool, attribute, &value), "cudaMemPoolSetAttribute");
  }
  uint64_t keep = std::numeric_limits<uint64_t>::max();
  CheckCuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
            "cudaMemPoolSetAttribute");
  return pool;
}

// Frees what it holds at the end. Only in the destructor: both may wait for the device.
struct HeldMemory {
  std::vector<void*> pinned, registrable;
  ~HeldMemory() {
    for (void* memory : pinned) cudaFreeHost(memory);
    for (void* memory : registrable) ncclMemFree(memory);
  }
};

struct Pool {
  explicit Pool(int device) : pool(MakePool(device)) {}
  ~Pool() { cudaMemPoolDestroy(pool); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  const cudaMemPool_t pool;
};

struct Event {
  explicit Event(unsigned flags) {
    CheckCuda(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
  }
  ~Event() { cudaEventDestroy(event); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t event = nullptr;
};

class CudaGpu : public Gpu {
 public:
  explicit CudaGpu(const CudaGpuOptions& options)
      : device_(options.device),
        pool_(options.device),
        staging_(options.staging_bytes),
        gemm_(options.gemm),
        shared_{pool_.pool, staging_, gemm_},
        comms_([this](int32_t stream) { return StreamOf(stream); }) {}

  GpuVersions Versions() const override {
    GpuVersions versions;
    cudaDeviceProp properties;
    CheckCuda(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
    versions.device = properties.name;
    CheckCuda(cudaRuntimeGetVersion(&versions.cuda_runtime), "cudaRuntimeGetVersion");
    CheckCuda(cudaDriverGetVersion(&versions.cuda_driver), "cudaDriverGetVersion");
    CheckNccl(ncclGetVersion(&versions.nccl), "ncclGetVersion");
    return versions;
  }

  void SetBeginWait(BeginWait begin) override { staging_.SetBeginWait(std::move(begin)); }

  int32_t CreateStream(std::string_view name, int priority) override {
    return streams_.Add(std::make_unique<CudaQueue>(std::string(name), priority, shared_));
  }
  void DestroyStream(int32_t stream) override { streams_.Remove(stream); }
  Queue& QueueOf(int32_t stream) override { return streams_.At(stream); }

  int32_t CreateEvent(bool timing) override {
    return events_.Add(std::make_unique<Event>(timing ? cudaEventDefault : cudaEventDisableTiming));
  }
  void DestroyEvent(int32_t event) override { events_.Remove(event); }
  void Record(int32_t event, int32_t stream) override {
    const CudaQueue& queue = streams_.At(stream);
    CheckCuda(cudaEventRecord(events_.At(event).event, queue.stream()), "cudaEventRecord",
              queue.name());
  }
  void Wait(int32_t event, int32_t stream) override {
    const CudaQueue& queue = streams_.At(stream);
    CheckCuda(cudaStreamWaitEvent(queue.stream(), events_.At(event).event, cudaEventWaitDefault),
              "cudaStreamWaitEvent", queue.name());
  }
  bool Done(int32_t event) override {
    if (!IsDone(cudaEventQuery(events_.At(event).event), "cudaEventQuery")) return false;
    staging_.Deliver();  // downloads before the record are in place when the host learns of it
    return true;
  }
  bool Await(int32_t event, const GiveUp& give_up) override {
    return WaitUntil([this, event] { return Done(event); }, give_up);
  }
  double ElapsedMs(int32_t from, int32_t to) override {
    float ms = 0;
    CheckCuda(cudaEventElapsedTime(&ms, events_.At(from).event, events_.At(to).event),
              "cudaEventElapsedTime");
    return ms;
  }

  GpuMemory Alloc(int32_t stream, uint64_t bytes) override {
    return Both(streams_.At(stream).Take(bytes));
  }
  void Free(int32_t stream, std::byte* data) override {
    const CudaQueue& queue = streams_.At(stream);
    CheckCuda(cudaFreeAsync(data, queue.stream()), "cudaFreeAsync", queue.name());
  }
  std::byte* AllocPinned(uint64_t bytes) override {
    void* memory = nullptr;
    CheckCuda(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "cudaHostAlloc");
    held_.pinned.push_back(memory);
    return static_cast<std::byte*>(memory);
  }
  GpuMemory AllocRegistrable(uint64_t bytes) override {
    void* memory = nullptr;
    CheckNccl(ncclMemAlloc(&memory, bytes), "ncclMemAlloc");
    held_.registrable.push_back(memory);
    return Both(static_cast<std::byte*>(memory));
  }

  std::string NewCommId() override { return CudaComms::NewId(); }
  int32_t BeginComm(const CommSpec& spec) override { return comms_.Begin(spec); }
  bool AwaitComm(int32_t comm, const GiveUp& give_up) override {
    return comms_.Await(comm, give_up);
  }
  void CheckComm(int32_t comm) override { comms_.Check(comm); }
  void FinalizeComm(int32_t comm) override { comms_.Finalize(comm); }
  void DestroyComm(int32_t comm) override { comms_.Destroy(comm); }
  void AbortComms(const std::vector<int32_t>& comms) override { comms_.Abort(comms); }
  void Launch(int32_t comm, const std::vector<GpuCall>& calls) override {
    comms_.Launch(comm, calls);
  }
  int64_t Register(int32_t comm, std::byte* data, uint64_t bytes) override {
    return comms_.Register(comm, data, bytes);
  }
  void Deregister(int32_t comm, int64_t handle) override { comms_.Deregister(comm, handle); }

 private:
  cudaStream_t StreamOf(int32_t stream) const { return streams_.At(stream).stream(); }
  static GpuMemory Both(std::byte* data) { return {data, reinterpret_cast<uint64_t>(data)}; }

  // In the reverse order of their end: communicators are aborted, streams and events destroyed,
  // cuBLAS waits for what still runs, then memory is given back.
  const int device_;
  HeldMemory held_;
  Pool pool_;
  CudaStaging staging_;
  CudaGemm gemm_;
  CudaShared shared_;
  IdTable<Event> events_{"event"};
  IdTable<CudaQueue> streams_{"stream"};
  CudaComms comms_;
};

cudaError_t Use(int device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return status;
  return device < count ? cudaSetDevice(device) : cudaErrorInvalidDevice;
}

}  // namespace

std::unique_ptr<Gpu> OpenCudaGpu(const CudaGpuOptions& options) {
  // NOLINTNEXTLINE: before any other thread of ours.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  CheckCuda(Use(options.device), "cudaSetDevice", "device " + std::to_string(options.device));
  return std::make_unique<CudaGpu>(options);
}

std::string WhyNoDevice(int device) {
  const cudaError_t status = Use(device);
  if (status == cudaSuccess) return "";
  static_cast<void>(cudaGetLastError());
  return ToText(status);
}

}  // namespace shardproof
