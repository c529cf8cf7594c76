// standin_gpu.h: what is a Gpu without a GPU? For tests: streams, events, memory, communicators of
// the simulator.
//
// One for each rank of a RunSim, used on that rank's fiber. So NcclFabric runs under the
// simulator's timings, and a wait that can never end is known at once: then the stand-in's clock
// begins to run, and whoever waits gives up by it.
//
// NCCL's own rules are kept where the simulator has them: a communicator exists when all members
// have come, the first message from one rank to another is issued when both hosts have come to it
// (ncclTransportP2pSetup, src/transport.cc), a call that is not matched waits, kernels of a
// communicator run in issue order. What CUDA leaves open is open here: nothing orders streams but
// events.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/fabric/fabric.h"
#include "conformance/fabric/nccl/gpu.h"

namespace shardproof {

// Stands still as long as the simulator has something to do.
struct StandinClock {
  int64_t now_us = 0;
};

// Numbers of communicator ids, common to all ranks of a run.
struct StandinIds {
  int64_t next = 0;
};

class StandinGpu : public Gpu {
 public:
  // sim, clock and ids outlive the Gpu.
  StandinGpu(Fabric& sim, StandinClock& clock, StandinIds& ids);
  ~StandinGpu() override;

  GpuVersions Versions() const override;
  int32_t CreateStream(std::string_view name, int priority) override;
  void DestroyStream(int32_t stream) override;
  Queue& QueueOf(int32_t stream) override;
  int32_t CreateEvent(bool timing) override;
  void DestroyEvent(int32_t event) override;
  void Record(int32_t event, int32_t stream) override;
  void Wait(int32_t event, int32_t stream) override;
  bool Done(int32_t event) override;
  bool Await(int32_t event, const GiveUp& give_up) override;
  double ElapsedMs(int32_t from, int32_t to) override;
  GpuMemory Alloc(int32_t stream, uint64_t bytes) override;
  void Free(int32_t stream, std::byte* data) override;
  std::byte* AllocPinned(uint64_t bytes) override;
  GpuMemory AllocRegistrable(uint64_t bytes) override;
  std::string NewCommId() override;
  int32_t BeginComm(const CommSpec& spec) override;
  bool AwaitComm(int32_t comm, const GiveUp& give_up) override;
  void CheckComm(int32_t comm) override;
  void FinalizeComm(int32_t comm) override;
  void DestroyComm(int32_t comm) override;
  void AbortComms(const std::vector<int32_t>& comms) override;
  void Launch(int32_t comm, const std::vector<GpuCall>& calls) override;
  int64_t Register(int32_t comm, std::byte* data, uint64_t bytes) override;
  void Deregister(int32_t comm, int64_t handle) override;

  // For tests: what has not been destroyed, freed or deregistered.
  struct Live {
    int streams = 0, events = 0, blocks = 0, comms = 0, registrations = 0;
  };
  Live live() const { return live_; }

 private:
  class SimQueue;
  // Of a record. Records of a stream complete in order: one that has completed completes those
  // before it.
  struct Completion {
    std::shared_ptr<int64_t>
        stream_done;  // the number of the latest record of the stream that has completed
    int64_t number = 0;
    int64_t time = 0;  // of timing events
  };
  struct Event {
    int32_t sim = -1;
    bool timing = false;
    std::shared_ptr<Completion> record;  // the latest one; null before any
  };
  struct Comm {
    CommSpec spec;
    int32_t sim_group = -1;
    enum class State { kBegun, kReady, kFinalized, kGone } state = State::kBegun;
    std::vector<CommOp> launched;                     // and not issued yet
    std::set<std::pair<int32_t, int32_t>> connected;  // from one member, to another
  };
  // The hosts of from and to meet, where nobody has sent from the one to the other before. false:
  // the other one does not come.
  bool Connect(Comm& comm, int32_t from, int32_t to);
  bool MeetAll(int32_t sim_group);
  void Need(bool holds, const char* call, const std::string& status) const;  // throws GpuError
  static void Complete(Completion* record);
  bool PassTime(const GiveUp& give_up);  // true: it gave up
  SimQueue& StreamOf(int32_t stream, const char* call) const;
  int32_t SimStreamOf(int32_t stream, const char* call) const;
  Event& EventOf(int32_t event, const char* call);
  Comm& CommOf(int32_t comm, const char* call);
  GpuMemory TakeBlock(int32_t sim_stream, uint64_t bytes);
  void ReturnBlock(int32_t sim_stream, std::byte* data);

  Fabric& sim_;
  StandinClock& clock_;
  StandinIds& ids_;
  std::vector<std::unique_ptr<SimQueue>> streams_;
  std::vector<Event> events_;
  std::vector<Comm> comms_;
  std::map<std::byte*, Block> blocks_;
  std::vector<std::unique_ptr<std::byte[]>> host_memory_;
  std::map<std::byte*, uint64_t> registrable_;  // sizes
  std::map<int64_t, int32_t> registrations_;    // handle -> communicator
  int64_t next_handle_ = 1;
  std::shared_ptr<int64_t> time_ = std::make_shared<int64_t>(0);  // counts time stamps
  Live live_;
};

}  // namespace shardproof
