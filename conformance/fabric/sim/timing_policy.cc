#include "conformance/fabric/sim/timing_policy.h"

#include <algorithm>
#include <cassert>

namespace shardproof {
namespace {

using Kind = ActionKind;
constexpr std::array<Kind, kActionKinds> kDeviceFirst{Kind::kFinish, Kind::kLocal, Kind::kStart,
                                                      Kind::kHost};
constexpr std::array<Kind, kActionKinds> kFinishLast{Kind::kHost, Kind::kLocal, Kind::kStart,
                                                     Kind::kFinish};
constexpr std::array<Kind, kActionKinds> kLocalLast{Kind::kHost, Kind::kStart, Kind::kFinish,
                                                    Kind::kLocal};

Action TakeAt(std::vector<Action>* actions, size_t index) {
  const Action action = (*actions)[index];
  actions->erase(actions->begin() + static_cast<std::ptrdiff_t>(index));
  return action;
}

}  // namespace

uint64_t Random::Next() {
  uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

Chooser::Chooser(const SimOptions& options, int world)
    : policy_(options.policy),
      drift_(options.drift),
      random_(options.seed),
      slow_(static_cast<size_t>(world)) {
  for (uint64_t& weight : weights_) weight = uint64_t{1} << (2 * random_.Below(3));  // 1, 4, 16
  for (size_t rank = 0; rank < slow_.size(); ++rank) slow_[rank] = drift_ && random_.Below(2) == 0;
  priorities_.resize(static_cast<size_t>(world));
  for (int i = 0; i < options.pct_depth; ++i) {
    // The length of the run is not known: log-uniform up to 2^17 steps.
    change_at_.push_back(random_.Below(uint64_t{1} << (3 + random_.Below(15))));
  }
  std::sort(change_at_.begin(), change_at_.end());
}

bool Chooser::preempts() const {
  return policy_ == TimingPolicy::kRandom || policy_ == TimingPolicy::kPct ||
         (policy_ == TimingPolicy::kEager && !drift_);
}

bool Chooser::minimal_waits() const {
  return policy_ == TimingPolicy::kRandom || policy_ == TimingPolicy::kPct;
}

bool Chooser::ReadsEarly() {
  if (minimal_waits()) return random_.Below(2) == 0;
  return policy_ != TimingPolicy::kLazyComm;
}

Action Chooser::Take(Enabled* enabled) {
  ++steps_;
  switch (policy_) {
    case TimingPolicy::kEager:
      return TakeByClass(enabled, kDeviceFirst);
    case TimingPolicy::kLazyComm:
      return TakeByClass(enabled, kFinishLast);
    case TimingPolicy::kLazyCompute:
      return TakeByClass(enabled, kLocalLast);
    case TimingPolicy::kRandom:
      return TakeRandom(enabled);
    case TimingPolicy::kPct:
      return TakePct(enabled);
  }
  return {};
}

Action Chooser::TakeByClass(Enabled* enabled, const std::array<ActionKind, kActionKinds>& order) {
  for (const ActionKind kind : order) {
    auto& actions = (*enabled)[static_cast<size_t>(kind)];
    if (actions.empty()) continue;
    // The class that is put off: any of it, else always the oldest.
    const bool last = kind == order.back() && kind != ActionKind::kHost;
    return TakeAt(&actions, last ? random_.Below(actions.size()) : 0);
  }
  assert(false && "nothing enabled");
  return {};
}

Action Chooser::TakeRandom(Enabled* enabled) {
  size_t total = 0;
  for (const auto& actions : *enabled) total += actions.size();
  assert(total > 0);
  for (int attempt = 0;; ++attempt) {
    size_t index = random_.Below(total), kind = 0;
    while (index >= (*enabled)[kind].size()) index -= (*enabled)[kind++].size();
    const Action& action = (*enabled)[kind][index];
    uint64_t weight = weights_[kind];
    if (action.kind == ActionKind::kHost && slow_[static_cast<size_t>(action.rank)])
      weight = weight / 16;
    if (attempt >= 8 || random_.Below(16) < weight) return TakeAt(&(*enabled)[kind], index);
  }
}

// Actors: the host; each stream's own work; each stream's completions of communication.
uint64_t& Chooser::PriorityOf(const Action& action) {
  auto& of_rank = priorities_[static_cast<size_t>(action.rank)];
  size_t actor = 0;
  if (action.kind != ActionKind::kHost) {
    actor =
        1 + 2 * static_cast<size_t>(action.stream) + (action.kind == ActionKind::kFinish ? 1 : 0);
  }
  if (of_rank.size() <= actor) of_rank.resize(actor + 1);
  if (of_rank[actor] == 0) of_rank[actor] = 1000 + (random_.Next() >> 1);
  return of_rank[actor];
}

Action Chooser::TakePct(Enabled* enabled) {
  size_t best_kind = 0, best_index = 0;
  uint64_t best = 0;
  for (size_t kind = 0; kind < kActionKinds; ++kind) {
    for (size_t index = 0; index < (*enabled)[kind].size(); ++index) {
      const uint64_t priority = PriorityOf((*enabled)[kind][index]);
      if (priority <= best) continue;
      best = priority;
      best_kind = kind;
      best_index = index;
    }
  }
  if (changes_ < change_at_.size() && steps_ >= change_at_[changes_]) {
    // From here on, whoever would have run yields to everybody; a later change goes below an
    // earlier one.
    PriorityOf((*enabled)[best_kind][best_index]) = 999 - std::min<uint64_t>(changes_++, 998);
    return TakePct(enabled);
  }
  return TakeAt(&(*enabled)[best_kind], best_index);
}

}  // namespace shardproof
