#include "reference/plan/reducing.h"

#include "reference/core/at.h"

namespace reference {

void Reducing::Begin(const std::vector<int32_t>& groups) {
  for (int32_t g : groups) {
    if (!At(facts_.groups, g).trainable || At(begun_, g)) continue;
    if (facts_.config.HasLocalGrad()) AwaitBefore(turn_);
    if (facts_.config.HasDoubleBuffers()) AwaitBuffer(At(facts_.buckets.groups, g).unit);
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
  AwaitBefore(turn_ + 1);
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

// Until one of two buffers is there for the unit: no more than one other unit has gradients that
// are not reduced (NVIDIA/Megatron-LM#4054, #5222).
void Reducing::AwaitBuffer(int32_t unit) {
  if (!facts_.HasDoubleBuffer(unit)) return;
  const auto others = [&] {
    std::set<int32_t> units = UnitsWithBuffer();
    units.erase(unit);
    return units.size();
  };
  while (others() > 1 && !under_way_.empty()) AwaitBefore(under_way_.front().turn + 1);
}

std::set<int32_t> Reducing::UnitsWithBuffer() const {
  std::set<int32_t> units;
  const auto add = [&](int32_t group) {
    const int32_t unit = At(facts_.buckets.groups, group).unit;
    if (facts_.HasDoubleBuffer(unit)) units.insert(unit);
  };
  for (int32_t g = 0; g < Length(begun_); ++g) {
    if (At(begun_, g)) add(g);
  }
  for (const UnderWay& one : under_way_) add(one.group);
  return units;
}

}  // namespace reference
