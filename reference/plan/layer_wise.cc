#include "reference/plan/layer_wise.h"

#include <algorithm>

#include "reference/core/at.h"

namespace reference {
namespace {

//   launched ------ waited ------ next one launched ------ published
//
// At most two buckets are between launch and publication: one that is being published and one
// that travels. Each bucket is gathered once per step, so every step has a chain of its own.
class GatherChain {
 public:
  // stale: else nothing is gathered, because values are the same everywhere.
  GatherChain(PlanWriter& write, bool stale) : write_(write), order_(InForwardOrder(write.facts)) {
    if (!stale) launched_ = published_ = Length(order_);
  }

  // Before an operation reads parameters of a bucket, it and those before it are published.
  void Need(const Operation& operation) {
    for (int32_t g : GroupsOf(write_.facts, operation, SPF_IN_PARAM)) {
      const auto place = std::ranges::find(order_, g);
      while (place != order_.end() && published_ <= place - order_.begin()) PublishNext();
    }
  }
  void PublishAll() {
    while (published_ < Length(order_)) PublishNext();
  }

 private:
  // Frozen parameters are everywhere already.
  static std::vector<int32_t> InForwardOrder(const PlanFacts& facts) {
    std::vector<int32_t> order;
    for (int32_t g = Length(facts.groups); g-- > 0;) {
      if (At(facts.groups, g).trainable) order.push_back(g);
    }
    return order;
  }

  // The next one starts before this one's values are copied, so that the copies hide it too.
  void PublishNext() {
    if (launched_ == published_) Add(Do::kGather, launched_++);
    Add(Do::kNeed, published_);
    if (launched_ < Length(order_)) Add(Do::kGather, launched_++);
    if (!write_.facts.config.aligned_layout) Add(Do::kRelease, published_);  // else in place
    ++published_;
  }
  void Add(Do what, int32_t place) {
    const int32_t group = At(order_, place);
    if (At(write_.facts.groups, group).travels) write_.Add(what).group = group;
  }

  PlanWriter& write_;
  const std::vector<int32_t> order_;      // bucket groups
  int32_t launched_ = 0, published_ = 0;  // so far; launched_ - published_ is 0 or 1
};

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
