// gather_pipeline.h: when are parameters gathered, and when do they go?
//
// Gathers run on their own stream, in one order that every rank shares: the order of the model's
// modules in forward, of units in reverse in backward, whether or not this rank's program uses them
// (FS-08, FS-11; PR 2218). While one unit computes, the next ones are gathered as far as the
// prefetch limit allows, in bytes; without a limit one unit ahead, or one bucket group where a
// schedule of parts asks for groups (FS-09).
//
// Synchronisation, per bucket group:
//   gather waits for compute   the weights that are sent were installed, and the storage was
//                              allocated, on compute
//   compute waits for gather   before the first read, or before the storage is released
//
// Storage belongs to the compute stream: allocated when a gather is launched, freed after the
// unit's last read. So memory is really bounded: a gather starts only when compute has come to the
// place where its storage became free.
#pragma once
#include <optional>
#include <vector>

#include "reference/fsdp/context.h"
#include "reference/fsdp/parameters.h"

namespace reference {

enum class Pass { kForward, kBackward };

class GatherPipeline : public Parameters {
 public:
  explicit GatherPipeline(Context& context);

  // One place of the order of a pass: a unit, or (forward) a module outside units that owns
  // parameters. A unit that comes again after later ones has a place there, too.
  struct Stage {
    int32_t module = 0;
    int32_t unit = kNoUnit;
    std::vector<int32_t> groups;
  };
  const std::vector<Stage>& stages() const { return forward_; }
  const std::vector<Stage>& backward_stages() const { return backward_; }
  // Position of a module in the forward order, or -1 if it has none.
  int32_t PositionOf(int32_t module) const { return position_[static_cast<size_t>(module)]; }

  // The next place of a unit after this one; its first place if there is no other.
  int32_t NextOf(Pass pass, int32_t unit, int32_t after) const;

  // H11, without overlapped gathers: gathers everything that is not there and waits.
  void GatherAll();
  // Makes the parameters at this position of the pass available to compute, and launches ahead what
  // follows.
  void Acquire(Pass pass, int32_t position);
  // Launches what the pass needs first, before it is needed.
  void Prefetch(Pass pass) { LaunchAhead(pass, -1); }
  // Makes one group available, wherever it stands in the order.
  void Need(int32_t group) override;
  // Reshard: frees a unit's gathered parameters, after what compute has enqueued so far.
  void Release(int32_t unit);

  // For a schedule that takes two microbatches through the units at the same time. order: groups as
  // one pass of one microbatch needs them. Makes one group available and launches ahead what
  // follows it there.
  void AcquireGroup(const std::vector<int32_t>& order, int32_t group);
  void Prefetch(const std::vector<int32_t>& order) { LaunchAhead(order, 0); }
  // Lazy reshard: a unit whose parameters may be needed soon is only marked. What is still marked
  // goes just before the next gather is launched.
  void ReleaseLazily(int32_t unit);

  // End of a step or of an eval: frees what is still gathered (parameters outside units are kept
  // for the whole step).
  void Reset();
  // H10 changed the weights: whatever was gathered is stale (FS-23).
  void Invalidate();
  void Destroy();

 private:
  enum class State { kAbsent, kInFlight, kReady };
  struct Group {
    State state = State::kAbsent;
    bool ahead = false;   // launched, and not needed so far
    bool marked = false;  // released lazily
    bool outer_stale =
        false;  // HSDP with outer sharding: the inner shard has old slices of other outer ranks
    uint64_t bytes = 0;
    spf_event done = nullptr;
  };
  Group& At(int32_t group) { return groups_[static_cast<size_t>(group)]; }
  const std::vector<Stage>& Order(Pass pass) const {
    return pass == Pass::kForward ? forward_ : backward_;
  }
  void AddUnitStage(Stage stage);
  Stage StageAgain(int32_t unit) const;
  void Launch(int32_t group);
  void LaunchOuter(const BucketGroup& group);
  void LaunchAhead(Pass pass, int32_t position);
  void LaunchAhead(const std::vector<int32_t>& order, size_t next);
  bool WithinLimit(uint64_t bytes) const;
  void WaitFor(Group& group);
  void Free(int32_t group);
  void FreeMarked();

  Context& c_;
  std::vector<Group> groups_;
  std::vector<Stage> forward_, backward_;
  std::vector<int32_t> position_;
};

}  // namespace reference
