#include "conformance/fabric/nccl/watchdog.h"

#include <utility>

namespace shardproof {

GiveUp Watchdog::Waiting(std::string what) {
  what_ = std::move(what);
  since_ = next_look_ = sources_.now_us();
  return [this] {
    if (cause_ != Cause::kNone) return true;
    const int64_t now = sources_.now_us();
    if (now < next_look_) return false;
    next_look_ = now + sources_.look_us;
    if (Look(now)) return true;
    if (now - since_ < sources_.stall_us) return false;
    return Because(Cause::kStalled, "nothing has completed for " +
                                        std::to_string((now - since_) / 1'000'000) +
                                        " s while the host waits in " + what_);
  };
}

bool Watchdog::Bites() { return cause_ != Cause::kNone || Look(sources_.now_us()); }

bool Watchdog::Look(int64_t now) {
  if (const auto why = sources_.ended()) return Because(Cause::kEnded, *why);
  if (const auto why = sources_.broken()) return Because(Cause::kBroken, *why);
  if (sources_.progress()) since_ = now;
  return false;
}

bool Watchdog::Because(Cause cause, std::string reason) {
  cause_ = cause;
  reason_ = std::move(reason);
  return true;
}

}  // namespace shardproof
