#include "reference/plan/layer_wise.h"

#include <algorithm>

#include "reference/core/at.h"
#include "reference/plan/gather_chain.h"

namespace reference {
namespace {

void Forward(PlanWriter& write, GatherChain& chain, const Pass& pass) {
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
  GatherChain chain(write, write.facts.stale);
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
  GatherChain chain(write, write.facts.stale);
  write.Mark(SPF_HOOK_START_PARAM_SYNC, 0, 0);
  for (int32_t m = 0; m < write.facts.config.microbatches; ++m) {
    const Pass pass = write.Open(m, false);
    Forward(write, chain, pass);
    write.Add(Do::kClose, pass.id);
  }
  chain.PublishAll();
}

void PlanLayerWiseGathers(PlanWriter& write) {
  if (write.facts.config.GathersAtInstall()) GatherChain(write, true).PublishAll();
}

}  // namespace reference
