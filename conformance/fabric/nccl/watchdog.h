// watchdog.h: when must a host that waits give up, and why?
//
// Whoever waits asks between two looks. Reasons, in this order: the run has been ended by another
// rank, a communicator has an error, nothing on this rank has completed for too long. It looks at
// these once in look_us, since they cost; the first question of a wait always looks. The clock is
// given, so that tests need no time.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "conformance/fabric/nccl/rendezvous/rendezvous.h"

namespace shardproof {

struct WatchdogSources {
  std::function<int64_t()> now_us;                     // of a clock that never goes back
  std::function<std::optional<std::string>()> ended;   // by another rank: why
  std::function<std::optional<std::string>()> broken;  // a communicator's error
  std::function<bool()> progress;  // has anything completed since the last question?
  int64_t stall_us = 60'000'000;
  int64_t look_us = 1'000;
};

class Watchdog {
 public:
  enum class Cause { kNone, kEnded, kBroken, kStalled };

  explicit Watchdog(WatchdogSources sources) : sources_(std::move(sources)) {}

  // Begins a wait of the host for `what`, in words; the answer is to be asked until the wait is
  // over, and stays true once it was. Only the latest one is valid.
  GiveUp Waiting(std::string what);
  // A look without waiting; true: there is a reason.
  bool Bites();

  Cause cause() const { return cause_; }
  const std::string& reason() const { return reason_; }  // empty without cause
  const std::string& waiting() const { return what_; }   // for what the host waits, or waited last

 private:
  bool Look(int64_t now);
  bool Because(Cause cause, std::string reason);

  WatchdogSources sources_;
  std::string what_, reason_;
  Cause cause_ = Cause::kNone;
  int64_t since_ = 0;  // nothing has completed since then
  int64_t next_look_ = 0;
};

}  // namespace shardproof
