// dry_fabric.h: what does one rank of an engine do when it has no partner?
//
// A rank runs alone. What it enqueues runs at once, in the order of issue; what it would wait for
// has happened. A collective completes as if every member had brought what this rank brings, as far
// as its bytes are few enough to matter to the host (row counts, flags); larger ones move nothing.
// So a trace of such a run says what the rank issued, and no number in it means anything.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/fabric/arena.h"
#include "conformance/fabric/fabric.h"

namespace shardproof {

struct DryOptions {
  uint64_t arena_bytes = uint64_t{1} << 30;  // address space; pages cost nothing until written
  // Of blocks and collectives: more bytes are not cleared, and not moved.
  uint64_t most_bytes_moved = uint64_t{1} << 14;
};

class DryFabric final : public Fabric {
 public:
  DryFabric(int32_t rank, int32_t world, const DryOptions& options = {});

  int rank() const override { return rank_; }
  int world() const override { return world_; }
  bool aborted() const override { return aborted_; }

  int32_t CreateStream(std::string_view, int) override { return streams_++; }
  void DestroyStream(int32_t) override {}
  spf_status SyncStream(int32_t) override { return Answer(); }
  int32_t CreateEvent() override;
  void DestroyEvent(int32_t) override {}
  void Record(int32_t event, int32_t stream) override;
  bool Wait(int32_t event, int32_t stream) override;
  spf_status SyncEvent(int32_t event, bool* recorded) override;

  Block Alloc(int32_t stream, uint64_t bytes, bool pinned) override;
  void Free(int32_t stream, const Block& block) override;
  spf_status RegisterBlock(int32_t, const Block&) override { return Answer(); }
  spf_status DeregisterBlock(int32_t, const Block&) override { return Answer(); }

  void Enqueue(int32_t stream, std::string_view what, Body body) override;

  int32_t OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks) override;
  // The key is the one that members get who give the same list at the same call of the parent.
  spf_status CreateGroup(int32_t parent, const std::vector<int32_t>& world_ranks, int32_t* group,
                         std::string* key) override;
  spf_status DestroyGroup(int32_t) override { return Answer(); }
  void Communicate(std::vector<CommOp> ops) override;

  spf_status Drain() override { return Answer(); }
  void Fail(std::string_view reason) override;

  // Of this rank: its reason for Fail, and what an engine's function threw in device work; empty:
  // neither.
  const std::string& error() const { return error_; }
  const std::string& threw() const { return threw_; }
  const Arena& arena() const { return arena_; }

 private:
  struct Group {
    std::string key;
    std::vector<int32_t> members;
    int32_t me = -1;
    int64_t creates = 0;  // calls with it as the parent
  };
  spf_status Answer() const { return aborted_ ? SPF_ABORTED : SPF_OK; }
  void Move(const CommOp& op, const Group& group) const;

  const int32_t rank_, world_;
  const DryOptions options_;
  Arena arena_;
  bool aborted_ = false;
  std::string error_, threw_;
  int32_t streams_ = 0;
  std::vector<bool> recorded_;  // by event
  std::vector<Group> groups_;
};

}  // namespace shardproof
