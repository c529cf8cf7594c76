// gpu.h: what must CUDA and NCCL offer one rank so that a fabric can be built on them?
//
// The thin end: no rules of ours, no bookkeeping, no policy. NcclFabric stands on it; CudaGpu maps
// it to CUDA and NCCL, and StandinGpu to the simulator, so that all that NcclFabric does is tested
// without a GPU. One thread calls. Ids are small integers, given by create calls, dead after the
// destroy call, and may be given again then.
//
// Every status is checked: what is not success throws GpuError. Only Await and AwaitComm wait, and
// calls that move bytes between host and device when too many are under way. They poll: no other
// call blocks inside the driver or NCCL (communicators are made with ncclConfig_t::blocking = 0),
// so that whoever waits can stop. But for DestroyComm and AbortComms: NCCL gives memory back in
// them, which waits for what the device still does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/cuda/queue.h"
#include "conformance/fabric/nccl/rendezvous/rendezvous.h"

namespace shardproof {

// "ncclAllGather on dp: ncclInvalidArgument (invalid argument): ...". call names what it was about
// where that is known.
class GpuError : public std::runtime_error {
 public:
  GpuError(std::string_view call, std::string_view status)
      : std::runtime_error(std::string(call) + ": " + std::string(status)),
        call_(call),
        status_(status) {}
  const std::string& call() const { return call_; }
  const std::string& status() const { return status_; }

 private:
  std::string call_, status_;
};

struct GpuVersions {
  std::string device;                     // "NVIDIA H200"
  int cuda_runtime = 0, cuda_driver = 0;  // 13000: 13.0
  int nccl = 0;                           // 22809: 2.28.9
};

// data: what queues and communicators use. address: what engines are told. On CUDA they are the
// same number.
struct GpuMemory {
  std::byte* data = nullptr;
  uint64_t address = 0;
};

// How a communicator is begun. All members give the same id, name and ranks.
struct CommSpec {
  std::string id;                    // from NewCommId of one member
  std::string name;                  // for messages
  std::vector<int32_t> world_ranks;  // in the order of its ranks; NCCL needs only their number
  int32_t me = -1;                   // this rank's index in them
};

// One call of NCCL, all of its own primitives. Counts are elements of an spf_dtype, all of which
// NCCL has.
struct GpuCall {
  // all_gather: count of each rank. reduce_scatter: count that each rank receives.
  enum class Kind : uint8_t { kAllGather, kAllReduce, kReduceScatter, kBroadcast, kSend, kRecv };
  Kind kind = Kind::kAllGather;
  int32_t dtype = 0;      // spf_dtype
  int32_t reduction = 0;  // spf_reduction: ncclSum or ncclAvg
  int32_t stream = -1;
  const std::byte* send = nullptr;  // broadcast: read on the root only
  std::byte* recv = nullptr;
  uint64_t count = 0;
  int32_t peer = -1;  // broadcast: root. send, recv: the other one. Ranks of the communicator
};

class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual GpuVersions Versions() const = 0;

  // Begins a wait inside a call that is not given a GiveUp, and answers one. A call that gives up
  // throws GpuError. Empty: such waits have no end.
  using BeginWait = std::function<GiveUp(const std::string& what)>;
  virtual void SetBeginWait(BeginWait begin) { static_cast<void>(begin); }

  // Streams without order against the legacy default stream (cudaStreamNonBlocking). priority: as
  // CUDA's, lower is more urgent, clamped to what the device has. Destroying does not wait: what is
  // enqueued still runs.
  virtual int32_t CreateStream(std::string_view name, int priority) = 0;
  virtual void DestroyStream(int32_t stream) = 0;
  // The stream's end as kernels see it. Valid until the stream is destroyed.
  virtual Queue& QueueOf(int32_t stream) = 0;

  // cudaEventDisableTiming unless timing. A wait takes the latest record at the time of its issue;
  // none: no edge.
  virtual int32_t CreateEvent(bool timing) = 0;
  virtual void DestroyEvent(int32_t event) = 0;
  virtual void Record(int32_t event, int32_t stream) = 0;
  virtual void Wait(int32_t event, int32_t stream) = 0;
  virtual bool Done(int32_t event) = 0;  // the latest record; true if there was none
  // Until Done; false: give_up said so. Asks give_up between two looks, and leaves the processor to
  // others in between.
  virtual bool Await(int32_t event, const GiveUp& give_up) = 0;
  // Milliseconds between two timing events. REQUIRES: both done.
  virtual double ElapsedMs(int32_t from, int32_t to) = 0;

  // Stream-ordered memory of a pool of this Gpu (cudaMallocFromPoolAsync, cudaFreeAsync), contents
  // undefined; bytes > 0. The pool reuses what event dependencies order
  // (cudaMemPoolReuseFollowEventDependencies = 1) and what has been freed already when it looks
  // (cudaMemPoolReuseAllowOpportunistic = 1: reuse is likely, so that a use after a free is seen).
  // It must not make streams wait for each other (cudaMemPoolReuseAllowInternalDependencies = 0):
  // such a wait would be an edge that the program does not have, which hides its races, and could
  // close a cycle with a collective. It keeps what it has (cudaMemPoolAttrReleaseThreshold at its
  // largest): giving memory back synchronises.
  virtual GpuMemory Alloc(int32_t stream, uint64_t bytes) = 0;
  virtual void Free(int32_t stream, std::byte* data) = 0;
  // These live as long as the Gpu: freeing them would synchronise (cudaFreeHost, cudaFree).
  // Contents undefined.
  virtual std::byte* AllocPinned(uint64_t bytes) = 0;
  // Memory that may be registered: ncclMemAlloc. NCCL's user guide (usage/bufferreg.rst) takes VMM
  // memory only; what cudaMalloc and cudaMallocAsync give is refused or unsafe.
  virtual GpuMemory AllocRegistrable(uint64_t bytes) = 0;

  // Communicators. BeginComm returns at once; AwaitComm waits until all members have come. false:
  // give_up said so.
  virtual std::string NewCommId() = 0;
  virtual int32_t BeginComm(const CommSpec& spec) = 0;
  virtual bool AwaitComm(int32_t comm, const GiveUp& give_up) = 0;
  // Throws if the communicator has an asynchronous error (ncclCommGetAsyncError: neither success
  // nor in progress).
  virtual void CheckComm(int32_t comm) = 0;
  // Begins ncclCommFinalize; AwaitComm ends it. REQUIRES: its work is done. All members do it.
  virtual void FinalizeComm(int32_t comm) = 0;
  virtual void DestroyComm(int32_t comm) = 0;  // REQUIRES: finalized
  // Ends their kernels on this rank, and the communicators. Together: ncclCommAbort waits for the
  // communicator's kernels, which may be queued behind a kernel of another one that only its own
  // abort ends. Not while another call is running.
  virtual void AbortComms(const std::vector<int32_t>& comms) = 0;

  // One ncclGroupStart .. ncclGroupEnd on one communicator: a single operation on all the streams
  // that calls name. It may still be on its way to the streams when this returns: AwaitComm before
  // anything else is put into them.
  virtual void Launch(int32_t comm, const std::vector<GpuCall>& calls) = 0;

  // ncclCommRegister of memory from AllocRegistrable; all members do it in the same order. Answers
  // a handle.
  virtual int64_t Register(int32_t comm, std::byte* data, uint64_t bytes) = 0;
  virtual void Deregister(int32_t comm, int64_t handle) = 0;
};

}  // namespace shardproof
