// cuda_comms.h: how are communicators of NCCL made, used, watched and ended?
//
// All are non-blocking (ncclConfig_t::blocking = 0): calls return while a thread of NCCL works on,
// and until ncclCommGetAsyncError says success no other call on the communicator, and no kernel on
// its streams, may follow.
#pragma once
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/fabric/nccl/gpu.h"
#include "conformance/fabric/nccl/id_table.h"

namespace shardproof {

// One thread calls. Meanings as in Gpu.
class CudaComms {
 public:
  // Which stream of CUDA has this id.
  using StreamOf = std::function<cudaStream_t(int32_t)>;

  explicit CudaComms(StreamOf stream_of) : stream_of_(std::move(stream_of)) {}
  ~CudaComms();  // aborts those that were not destroyed
  CudaComms(const CudaComms&) = delete;
  CudaComms& operator=(const CudaComms&) = delete;

  static std::string NewId();
  int32_t Begin(const CommSpec& spec);
  bool Await(int32_t comm, const GiveUp& give_up);
  void Check(int32_t comm);
  void Finalize(int32_t comm);
  void Destroy(int32_t comm);
  void Abort(const std::vector<int32_t>& comms);
  void Launch(int32_t comm, const std::vector<GpuCall>& calls);
  int64_t Register(int32_t comm, std::byte* data, uint64_t bytes);
  void Deregister(int32_t comm, int64_t handle);

 private:
  struct Comm {
    ncclComm_t comm = nullptr;
    std::string name;
    int ranks = 0;
    std::vector<void*> registered;  // handle - 1: index
    cudaEvent_t order = nullptr;    // of LaunchAlone, from its first use on
  };
  // Destroys its event, not the communicator.
  static void Forget(const Comm& comm);
  // In one group: all are told to stop before the first is waited for (NCCL 2.22 or later;
  // NVIDIA/nccl issue 1013).
  static void AbortTogether(const std::vector<std::unique_ptr<Comm>>& comms);

  // ncclInProgress, or success; throws otherwise.
  static ncclResult_t State(const Comm& comm);
  void LaunchGroup(const Comm& comm, const std::vector<GpuCall>& calls) const;
  void LaunchAlone(Comm& comm, std::vector<GpuCall> calls) const;
  ncclResult_t Issue(const Comm& comm, const GpuCall& call) const;

  StreamOf stream_of_;
  IdTable<Comm> comms_{"communicator"};
};

}  // namespace shardproof
