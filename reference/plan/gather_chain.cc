#include "reference/plan/gather_chain.h"

#include <algorithm>

#include "reference/core/at.h"

namespace reference {
namespace {

std::vector<int32_t> InForwardOrder(const PlanFacts& facts) {
  std::vector<int32_t> order;
  for (int32_t g = Length(facts.groups); g-- > 0;) {
    if (At(facts.groups, g).trainable) order.push_back(g);
  }
  return order;
}

}  // namespace

GatherChain::GatherChain(PlanWriter& write, bool stale)
    : write_(write), order_(InForwardOrder(write.facts)) {
  if (!stale) launched_ = published_ = Length(order_);
}

void GatherChain::Need(const Operation& operation) {
  for (int32_t g : GroupsOf(write_.facts, operation, SPF_IN_PARAM)) {
    const auto place = std::ranges::find(order_, g);
    while (place != order_.end() && published_ <= place - order_.begin()) PublishNext();
  }
}

void GatherChain::PublishAll() {
  while (published_ < Length(order_)) PublishNext();
}

// The next one starts before this one's values are copied, so that the copies hide it too.
void GatherChain::PublishNext() {
  if (launched_ == published_) Add(Do::kGather, launched_++);
  Add(Do::kNeed, published_);
  if (launched_ < Length(order_)) Add(Do::kGather, launched_++);
  if (!write_.facts.config.aligned_layout) Add(Do::kRelease, published_);  // else in place
  ++published_;
}

void GatherChain::Add(Do what, int32_t place) {
  const int32_t group = At(order_, place);
  if (At(write_.facts.groups, group).travels) write_.Add(what).group = group;
}

}  // namespace reference
