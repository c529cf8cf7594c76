// gpu_before.h: how does a test get in between? A Gpu that does what another one does, after
// telling of the call.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/fabric/nccl/gpu.h"

namespace shardproof {

// before is given the name of the function; what it throws is what the call throws.
class GpuBefore : public Gpu {
 public:
  GpuBefore(Gpu& inner, std::function<void(const char* call)> before)
      : inner_(inner), before_(std::move(before)) {}

  GpuVersions Versions() const override { return inner_.Versions(); }
  void SetBeginWait(BeginWait begin) override { inner_.SetBeginWait(std::move(begin)); }
  int32_t CreateStream(std::string_view name, int priority) override {
    before_("CreateStream");
    return inner_.CreateStream(name, priority);
  }
  void DestroyStream(int32_t stream) override {
    before_("DestroyStream");
    inner_.DestroyStream(stream);
  }
  Queue& QueueOf(int32_t stream) override {
    before_("QueueOf");
    return inner_.QueueOf(stream);
  }
  int32_t CreateEvent(bool timing) override {
    before_("CreateEvent");
    return inner_.CreateEvent(timing);
  }
  void DestroyEvent(int32_t event) override {
    before_("DestroyEvent");
    inner_.DestroyEvent(event);
  }
  void Record(int32_t event, int32_t stream) override {
    before_("Record");
    inner_.Record(event, stream);
  }
  void Wait(int32_t event, int32_t stream) override {
    before_("Wait");
    inner_.Wait(event, stream);
  }
  bool Done(int32_t event) override {
    before_("Done");
    return inner_.Done(event);
  }
  bool Await(int32_t event, const GiveUp& give_up) override {
    before_("Await");
    return inner_.Await(event, give_up);
  }
  double ElapsedMs(int32_t from, int32_t to) override {
    before_("ElapsedMs");
    return inner_.ElapsedMs(from, to);
  }
  GpuMemory Alloc(int32_t stream, uint64_t bytes) override {
    before_("Alloc");
    return inner_.Alloc(stream, bytes);
  }
  void Free(int32_t stream, std::byte* data) override {
    before_("Free");
    inner_.Free(stream, data);
  }
  std::byte* AllocPinned(uint64_t bytes) override {
    before_("AllocPinned");
    return inner_.AllocPinned(bytes);
  }
  GpuMemory AllocRegistrable(uint64_t bytes) override {
    before_("AllocRegistrable");
    return inner_.AllocRegistrable(bytes);
  }
  std::string NewCommId() override {
    before_("NewCommId");
    return inner_.NewCommId();
  }
  int32_t BeginComm(const CommSpec& spec) override {
    before_("BeginComm");
    return inner_.BeginComm(spec);
  }
  bool AwaitComm(int32_t comm, const GiveUp& give_up) override {
    before_("AwaitComm");
    return inner_.AwaitComm(comm, give_up);
  }
  void CheckComm(int32_t comm) override {
    before_("CheckComm");
    inner_.CheckComm(comm);
  }
  void FinalizeComm(int32_t comm) override {
    before_("FinalizeComm");
    inner_.FinalizeComm(comm);
  }
  void DestroyComm(int32_t comm) override {
    before_("DestroyComm");
    inner_.DestroyComm(comm);
  }
  void AbortComms(const std::vector<int32_t>& comms) override {
    before_("AbortComms");
    inner_.AbortComms(comms);
  }
  void Launch(int32_t comm, const std::vector<GpuCall>& calls) override {
    before_("Launch");
    inner_.Launch(comm, calls);
  }
  int64_t Register(int32_t comm, std::byte* data, uint64_t bytes) override {
    before_("Register");
    return inner_.Register(comm, data, bytes);
  }
  void Deregister(int32_t comm, int64_t handle) override {
    before_("Deregister");
    inner_.Deregister(comm, handle);
  }

 private:
  Gpu& inner_;
  std::function<void(const char* call)> before_;
};

}  // namespace shardproof
