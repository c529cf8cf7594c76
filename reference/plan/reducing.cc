#include "reference/plan/reducing.h"

#include "reference/core/at.h"

namespace reference {

void Reducing::Begin(const std::vector<int32_t>& groups) {
  for (int32_t g : groups) {
    if (!At(facts_.groups, g).trainable || At(begun_, g)) continue;
    if (facts_.config.HasLocalGrad()) AwaitBefore(turn_);
    plan_.emplace_back(Do::kBegin, g);
    At(begun_, g) = true;
  }
}

void Reducing::HandOver(const std::vector<int32_t>& groups, bool last) {
  const Config& config = facts_.config;
  ++turn_;
  for (int32_t g : groups) {
    if (!At(facts_.groups, g).trainable) continue;
    At(begun_, g) = false;
    if (config.HasLocalGrad() && !config.ShardsGrads()) plan_.emplace_back(Do::kFold, g);
    if (config.ShardsGrads() || (last && config.overlap_grad_reduce)) Reduce(g, last);
  }
}

void Reducing::Finish() {
  for (int32_t g = 0; g < Length(facts_.groups) && !facts_.config.overlap_grad_reduce; ++g) {
    ++turn_;
    if (At(facts_.groups, g).trainable) Reduce(g, true);
  }
  Drain();
}

void Reducing::Reduce(int32_t group, bool last) {
  if (facts_.config.CastsFullGrads()) AwaitBefore(turn_ - 1);  // a cast needs a block of its own
  plan_.emplace_back(Do::kReduce, group).last = last;
  under_way_.push_back({group, turn_});
}

void Reducing::AwaitBefore(int64_t turn) {
  for (; !under_way_.empty() && under_way_.front().turn < turn; under_way_.pop_front())
    plan_.emplace_back(Do::kReduced, under_way_.front().group);
}

}  // namespace reference
