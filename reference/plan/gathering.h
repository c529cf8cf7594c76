// gathering.h: when does a plan gather parameters, and when do they go?
//
// Writes kGather, kNeed and kRelease. While one unit computes, the next ones are gathered as far as
// the prefetch limit allows, in bytes; without a limit one unit ahead, or one bucket group where
// units are gathered module by module (FS-09). With double buffers no third unit of those that
// share them, whatever the limit. Copies of a unit for forward and for backward are bucket groups
// of their own: each is gathered, awaited and released by itself.
#pragma once
#include "reference/plan/gather_order.h"
#include "reference/plan/step.h"

namespace reference {

class Gathering {
 public:
  Gathering(const PlanFacts& facts, Plan& plan);

  // H11: gathers ahead what the order needs first. Without overlapped gathers everything, and
  // waits; under the 1F1B schedule nothing then: a bucket group is gathered at first use.
  void Start(const GatherOrder& order);
  // Makes the parameters at this place of the order available to compute, and gathers ahead what
  // follows.
  void Acquire(const GatherOrder& order, int32_t place);
  // Gathers what the order needs first, before it is needed.
  void Prefetch(const GatherOrder& order) { GatherAhead(order, 0); }
  // Makes available what the operation reads, wherever it stands in the order.
  void Need(const Operation& operation);
  // Reshard: a unit's parameters go, or the copies that the pass has read. kBackwardBeside: another
  // microbatch is in forward of the unit, so that what forward reads stays. Nothing where they are
  // not sharded.
  enum class Pass { kForward, kBackward, kBackwardBeside };
  void Release(int32_t unit, Pass after);
  // A unit's forward has ended, and backward will come: goes, stays, or is kept in parts, as
  // reshard_after_forward says.
  void ReleaseAfterForward(int32_t unit);
  // Lazy reshard: a unit that may be needed soon is only marked. What is still marked goes just
  // before the next gather.
  void ReleaseLazily(int32_t unit, Pass after);
  // End of a step or of an eval: parameters outside units are kept until here.
  void ReleaseAll();

 private:
  enum class State { kAbsent, kInFlight, kReady };
  struct Group {
    State state = State::kAbsent;
    bool ahead = false;   // gathered, and not needed so far
    bool marked = false;  // released lazily
    bool first = false;   // not gathered since weights were installed
    bool parts = false;   // kept in parts
  };
  void GatherAhead(const GatherOrder& order, int32_t from);
  bool WithinLimit(uint64_t bytes) const;
  bool FindBuffers(const std::vector<int32_t>& wanted) const;
  bool FindsBuffer(int32_t unit, bool for_backward) const;
  bool IsForBackward(const Group& group) const;
  // A copy that nobody has read: it was gathered ahead for another microbatch, whose backward is
  // where this one's forward is, or the other way round.
  bool IsAheadOfOther(const Group& group) const {
    return facts_.config.backward_copies && group.ahead;
  }
  // Bucket groups of the unit that the pass reads; of backward with forward's copies for what runs
  // again, if it has others.
  std::vector<int32_t> ReadBy(Pass pass, int32_t unit) const;
  void Gather(int32_t group);
  void Need(int32_t group);
  void Release(Group& group);
  int32_t IdOf(const Group& group) const { return static_cast<int32_t>(&group - groups_.data()); }

  const PlanFacts& facts_;
  Plan& plan_;
  std::vector<Group> groups_;
};

}  // namespace reference
