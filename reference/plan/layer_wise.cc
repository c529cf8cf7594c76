#include "reference/plan/layer_wise.h"

#include <algorithm>

#include "reference/core/at.h"
#include "reference/plan/gather_chain.h"

namespace reference {
namespace {

// The chain's launches, waits and publications, as steps of a plan.
class ChainInPlan : private GatherPort {
 public:
  ChainInPlan(PlanWriter& write, bool stale)
      : write_(write), order_(InForwardOrder(write.facts)), chain_(Length(order_), *this, stale) {}

  void Need(const Operation& operation) {
    for (int32_t g : GroupsOf(write_.facts, operation, SPF_IN_PARAM)) {
      const auto place = std::find(order_.begin(), order_.end(), g);
      if (place != order_.end()) chain_.Need(static_cast<int32_t>(place - order_.begin()));
    }
  }
  void PublishAll() { chain_.PublishAll(); }

 private:
  // Frozen parameters are everywhere already.
  static std::vector<int32_t> InForwardOrder(const PlanFacts& facts) {
    std::vector<int32_t> order;
    for (int32_t g = Length(facts.groups); g-- > 0;) {
      if (At(facts.groups, g).trainable) order.push_back(g);
    }
    return order;
  }

  void Launch(int32_t position) override { Add(Do::kGather, position); }
  void Wait(int32_t position) override { Add(Do::kNeed, position); }
  void Publish(int32_t position) override {
    if (!write_.facts.config.aligned_layout)
      Add(Do::kRelease, position);  // else they arrive in place
  }
  void Add(Do what, int32_t position) {
    const int32_t group = At(order_, position);
    if (At(write_.facts.groups, group).travels) write_.Add(what).group = group;
  }

  PlanWriter& write_;
  const std::vector<int32_t> order_;  // bucket groups
  GatherChain chain_;
};

void Forward(PlanWriter& write, ChainInPlan& chain, const Pass& pass) {
  write.Mark(SPF_HOOK_FORWARD, 0, pass.id.microbatch);
  for (size_t i = 0; i < pass.backward; ++i) {
    chain.Need(pass.operations[i]);
    write.Run(pass, i);
  }
}

// Whether an operation from this one on adds to the bucket group's gradients.
bool IsAddedTo(const PlanFacts& facts, const Pass& pass, int32_t group, size_t from) {
  return std::ranges::any_of(std::span(pass.operations).subspan(from), [&](const Operation& o) {
    return std::ranges::count(GroupsOf(facts, o, SPF_IN_GRAD), group) > 0;
  });
}

void Backward(PlanWriter& write, const Pass& pass) {
  const PlanFacts& facts = write.facts;
  write.Mark(SPF_HOOK_ROOT_PRE_BACKWARD, 0, pass.id.microbatch);
  write.reducing.Begin(facts.buckets.root_groups);
  int32_t done = 0;  // buckets that were handed over: in one order on all ranks
  for (size_t i = pass.backward; i < pass.operations.size(); ++i) {
    write.Run(pass, i);
    while (done < Length(facts.groups) && !IsAddedTo(facts, pass, done, i + 1))
      write.reducing.HandOver({done++}, facts.IsLast(pass.id.microbatch));
  }
  write.Mark(SPF_HOOK_ROOT_POST_BACKWARD, 0, pass.id.microbatch);
}

}  // namespace

void PlanLayerWiseTraining(PlanWriter& write) {
  ChainInPlan chain(write, write.facts.stale);
  write.BeginStep();
  for (int32_t m = 0; m < write.facts.config.microbatches; ++m) {
    const Pass pass = write.Open(m, true);
    Forward(write, chain, pass);
    // A gather may use the storage of gradients, and a module that this rank's program leaves out
    // is needed by others' collectives.
    chain.PublishAll();
    Backward(write, pass);
    write.Add(Do::kClose, pass.id);
  }
  write.EndStep();
}

void PlanLayerWiseEval(PlanWriter& write) {
  ChainInPlan chain(write, write.facts.stale);
  write.Mark(SPF_HOOK_START_PARAM_SYNC, 0, 0);
  for (int32_t m = 0; m < write.facts.config.microbatches; ++m) {
    const Pass pass = write.Open(m, false);
    Forward(write, chain, pass);
    write.Add(Do::kClose, pass.id);
  }
  chain.PublishAll();
}

void PlanLayerWiseGathers(PlanWriter& write) {
  if (write.facts.config.GathersAtInstall()) ChainInPlan(write, true).PublishAll();
}

}  // namespace reference
