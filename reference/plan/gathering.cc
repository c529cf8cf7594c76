#include "reference/plan/gathering.h"

#include <algorithm>
#include <set>
#include <utility>

#include "reference/core/at.h"

namespace reference {

// Without sharding every rank has installed all of its weights itself. Where only gradients or
// optimizer state are sharded, what one pass has gathered stays until weights are installed.
Gathering::Gathering(const PlanFacts& facts, Plan& plan)
    : facts_(facts), plan_(plan), groups_(facts.groups.size()) {
  const Config& config = facts.config;
  const bool there = !config.Shards() || (!facts.stale && !config.ShardsParams());
  for (Group& group : groups_) {
    group.state = there ? State::kReady : State::kAbsent;
    const bool copy = facts.config.backward_copies && IsForBackward(group);
    group.first = copy ? facts.backward_stale : facts.stale;
  }
}

void Gathering::Start(const GatherOrder& order) {
  if (facts_.config.overlap_param_gather) return Prefetch(order);
  if (facts_.config.overlap_moe) return;
  for (const Group& group : groups_) {
    if (group.state == State::kAbsent) Gather(IdOf(group));
  }
  for (const Group& group : groups_) Need(IdOf(group));
}

void Gathering::Acquire(const GatherOrder& order, int32_t place) {
  const std::vector<int32_t>& wanted = At(order, place).groups;
  for (int32_t g : wanted) {
    At(groups_, g).marked = false;
    if (At(groups_, g).state == State::kAbsent) Gather(g);
    At(groups_, g).ahead = false;
  }
  GatherAhead(order, place + 1);
  for (int32_t g : wanted) Need(g);
}

// In order, and never past the first place that does not fit: skipping one would change the order
// of gathers.
void Gathering::GatherAhead(const GatherOrder& order, int32_t from) {
  if (!facts_.config.overlap_param_gather) return;
  const auto begin = order.begin() + std::max(from - 1, 0);
  for (auto next = order.begin() + from; next != order.end(); ++next) {
    // A unit is released before it comes again: nothing beyond that place can be in order yet.
    const auto same = [&](const Place& place) { return place.unit == next->unit; };
    if (next->unit != kNoUnit && std::any_of(begin, next, same)) return;
    std::vector<int32_t> wanted;
    uint64_t bytes = 0;
    for (int32_t g : next->groups) {
      if (At(groups_, g).state != State::kAbsent && !At(groups_, g).marked) continue;
      wanted.push_back(g);
      bytes += At(facts_.groups, g).bytes;
    }
    if (wanted.empty()) continue;
    if (!WithinLimit(bytes) || !FindBuffers(wanted)) return;
    for (int32_t g : wanted) {
      if (At(groups_, g).state == State::kAbsent) Gather(g);
      At(groups_, g).marked = false;  // marked and wanted again: it stays
      At(groups_, g).ahead = true;
    }
  }
}

bool Gathering::WithinLimit(uint64_t bytes) const {
  uint64_t ahead = 0;
  for (const Group& group : groups_)
    ahead += group.ahead ? At(facts_.groups, IdOf(group)).bytes : 0;
  if (!facts_.config.prefetch_limit_bytes) return ahead == 0;  // the next place, whatever its size
  return ahead + bytes <= Count(*facts_.config.prefetch_limit_bytes);
}

bool Gathering::FindBuffers(const std::vector<int32_t>& wanted) const {
  return std::ranges::all_of(wanted, [&](int32_t g) {
    return FindsBuffer(At(facts_.buckets.groups, g).unit, IsForBackward(At(groups_, g)));
  });
}

bool Gathering::FindsBuffer(int32_t unit, bool for_backward) const {
  if (!facts_.HasDoubleBuffer(unit)) return true;
  std::set<int32_t> others;
  for (const Group& group : groups_) {
    const int32_t other = At(facts_.buckets.groups, IdOf(group)).unit;
    if (group.state != State::kAbsent && other != unit && facts_.HasDoubleBuffer(other) &&
        IsForBackward(group) == for_backward)
      others.insert(other);
  }
  return others.size() < 2;
}

bool Gathering::IsForBackward(const Group& group) const {
  return At(facts_.buckets.groups, IdOf(group)).for_backward;
}

std::vector<int32_t> Gathering::ReadBy(Pass pass, int32_t unit) const {
  const std::vector<int32_t>& forward = At(facts_.buckets.unit_groups, unit);
  const Config& config = facts_.config;
  if (pass == Pass::kForward) return forward;
  if (pass == Pass::kBackwardBeside && !config.backward_copies) return {};
  std::vector<int32_t> groups = facts_.buckets.GroupsForBackward(unit);
  if (pass == Pass::kBackward && config.backward_copies &&
      (config.recompute || !config.recompute_modules.empty()))
    groups.insert(groups.begin(), forward.begin(), forward.end());
  return groups;
}

void Gathering::Gather(int32_t group) {
  for (Group& other : groups_) {
    if (other.marked) Release(other);
  }
  Group& state = At(groups_, group);
  Step& step = plan_.emplace_back(Do::kGather, group);
  step.first = std::exchange(state.first, false);
  step.parts = state.parts;
  state.state = State::kInFlight;
}

void Gathering::Need(const Operation& operation) {
  for (int32_t g : GroupsOf(facts_, operation, SPF_IN_PARAM)) {
    if (At(groups_, g).state == State::kAbsent) Gather(g);
    Need(g);
  }
}

void Gathering::Need(int32_t group) {
  Group& state = At(groups_, group);
  if (state.state == State::kInFlight) plan_.emplace_back(Do::kNeed, group);
  state.state = State::kReady;
  state.ahead = false;
}

void Gathering::Release(Group& group) {
  if (group.state == State::kAbsent) return;
  Need(IdOf(group));
  plan_.emplace_back(Do::kRelease, IdOf(group));
  group = {.first = group.first};
}

void Gathering::Release(int32_t unit, Pass after) {
  if (!facts_.config.ShardsParams()) return;
  for (int32_t g : ReadBy(after, unit)) {
    if (!IsAheadOfOther(At(groups_, g))) Release(At(groups_, g));
  }
}

void Gathering::ReleaseAfterForward(int32_t unit) {
  const int32_t ranks = facts_.config.reshard_after_forward;
  if (ranks == 0) return;
  if (ranks == 1) return Release(unit, Pass::kForward);
  for (int32_t g : At(facts_.buckets.unit_groups, unit)) {
    Group& group = At(groups_, g);
    if (At(facts_.buckets.groups, g).expert || group.state == State::kAbsent) {
      Release(group);
      continue;
    }
    Need(g);
    plan_.emplace_back(Do::kReshard, g);
    group = {.parts = true};
  }
}

void Gathering::ReleaseLazily(int32_t unit, Pass after) {
  if (!facts_.config.ShardsParams()) return;
  for (int32_t g : ReadBy(after, unit)) {
    Group& group = At(groups_, g);
    group.marked = group.state != State::kAbsent && !IsAheadOfOther(group);
  }
}

void Gathering::ReleaseAll() {
  if (!facts_.config.ShardsParams()) return;
  for (Group& group : groups_) Release(group);
}

}  // namespace reference
