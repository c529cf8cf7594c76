// reducing.h: when does a plan hand gradients over, and when does compute wait for their reduction?
//
//                          accumulates      reduced, in which microbatch
//   optim_grads(_params)   reduced shards   every one
//   all other strategies   locally          last
//
// Writes kBegin, kFold, kReduce and kReduced. While one unit's gradients are reduced the next one's
// are made; a unit that begins may find an unfinished one (a layer that runs twice), and then waits
// for what is being reduced where units share double buffers.
#pragma once
#include <deque>
#include <set>

#include "reference/plan/facts.h"
#include "reference/plan/step.h"

namespace reference {

class Reducing {
 public:
  Reducing(const PlanFacts& facts, Plan& plan)
      : facts_(facts), plan_(plan), begun_(facts.groups.size()) {}

  // Before the first gradient of these bucket groups. Parameters that get no gradient contribute
  // zeros.
  void Begin(const std::vector<int32_t>& groups);
  // After the last one. last: this microbatch completes the step's gradient.
  void HandOver(const std::vector<int32_t>& groups, bool last);
  // H9: what was left for the end of the step is reduced; compute waits for everything that is
  // being reduced, and may read the result.
  void Finish();

 private:
  struct UnderWay {
    int32_t group = -1;
    int64_t turn = 0;
  };
  void Reduce(int32_t group, bool last);
  void AwaitBefore(int64_t turn);
  void AwaitBuffer(int32_t unit);
  std::set<int32_t> UnitsWithBuffer() const;

  const PlanFacts& facts_;
  Plan& plan_;
  std::vector<bool> begun_;  // by bucket group
  std::deque<UnderWay> under_way_;
  int64_t turn_ = 0;  // counts hand-overs: one unit's bucket groups are one turn
};

}  // namespace reference
