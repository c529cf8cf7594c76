// timing_policy.h: of all that may happen next, what does?
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "conformance/fabric/device.h"
#include "conformance/fabric/sim/sim.h"

namespace shardproof {

// splitmix64: the same numbers everywhere, unlike the distributions of the standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  uint64_t Below(uint64_t n) { return Next() % n; }

 private:
  uint64_t state_;
};

enum class ActionKind : uint8_t {
  kHost,    // a host runs on
  kLocal,   // a local entry runs
  kStart,   // a kernel starts
  kFinish,  // a started kernel completes
};
constexpr size_t kActionKinds = 4;

struct Action {
  ActionKind kind = ActionKind::kHost;
  int32_t rank = 0;
  EntryId entry = -1;  // not for hosts
  int32_t stream = 0;  // its first stream
};

// What may happen, by kind, oldest first. Nothing in here can be disabled by something else that
// happens.
using Enabled = std::array<std::vector<Action>, kActionKinds>;

class Chooser {
 public:
  Chooser(const SimOptions& options, int world);

  // REQUIRES: something is enabled. Removes it and returns it.
  Action Take(Enabled* enabled);

  // Does a host stop at calls that do not block, so that others may go first?
  bool preempts() const;
  // May an operation complete before all members have started, as far as its data allows?
  bool minimal_waits() const;
  // Does a kernel read its send bytes when it starts (else as late as it may)?
  bool ReadsEarly();
  Random& random() { return random_; }

 private:
  Action TakeByClass(Enabled* enabled, const std::array<ActionKind, kActionKinds>& order);
  Action TakeRandom(Enabled* enabled);
  Action TakePct(Enabled* enabled);
  uint64_t& PriorityOf(const Action& action);

  TimingPolicy policy_;
  bool drift_;
  Random random_;
  std::array<uint64_t, kActionKinds> weights_{};   // of 16
  std::vector<bool> slow_;                         // by rank
  std::vector<std::vector<uint64_t>> priorities_;  // by rank and actor; 0: not drawn yet
  std::vector<uint64_t> change_at_;                // steps, ascending
  size_t changes_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace shardproof
