// forwarding_fabric.h: what does a fabric look like that stands before another one and changes one
// thing?
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "conformance/fabric/fabric.h"

namespace shardproof {

// Passes every call on.
class ForwardingFabric : public Fabric {
 public:
  explicit ForwardingFabric(Fabric& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int world() const override { return inner_.world(); }
  bool aborted() const override { return inner_.aborted(); }
  int32_t CreateStream(std::string_view name, int priority) override {
    return inner_.CreateStream(name, priority);
  }
  void DestroyStream(int32_t stream) override { inner_.DestroyStream(stream); }
  spf_status SyncStream(int32_t stream) override { return inner_.SyncStream(stream); }
  int32_t CreateEvent() override { return inner_.CreateEvent(); }
  void DestroyEvent(int32_t event) override { inner_.DestroyEvent(event); }
  void Record(int32_t event, int32_t stream) override { inner_.Record(event, stream); }
  bool Wait(int32_t event, int32_t stream) override { return inner_.Wait(event, stream); }
  spf_status SyncEvent(int32_t event, bool* recorded) override {
    return inner_.SyncEvent(event, recorded);
  }
  Block Alloc(int32_t stream, uint64_t bytes, bool pinned) override {
    return inner_.Alloc(stream, bytes, pinned);
  }
  void Free(int32_t stream, const Block& block) override { inner_.Free(stream, block); }
  Block AllocRegistrable(int32_t stream, uint64_t bytes) override {
    return inner_.AllocRegistrable(stream, bytes);
  }
  spf_status RegisterBlock(int32_t group, const Block& block) override {
    return inner_.RegisterBlock(group, block);
  }
  spf_status DeregisterBlock(int32_t group, const Block& block) override {
    return inner_.DeregisterBlock(group, block);
  }
  void Enqueue(int32_t stream, std::string_view what, Body body) override {
    inner_.Enqueue(stream, what, std::move(body));
  }
  int32_t OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks) override {
    return inner_.OpenGroup(key, world_ranks);
  }
  spf_status CreateGroup(int32_t parent, const std::vector<int32_t>& world_ranks, int32_t* group,
                         std::string* key) override {
    return inner_.CreateGroup(parent, world_ranks, group, key);
  }
  spf_status DestroyGroup(int32_t group) override { return inner_.DestroyGroup(group); }
  void Communicate(std::vector<CommOp> ops) override { inner_.Communicate(std::move(ops)); }
  spf_status Drain() override { return inner_.Drain(); }
  void Fail(std::string_view reason) override { inner_.Fail(reason); }

 private:
  Fabric& inner_;
};

}  // namespace shardproof
