#include "conformance/runner/workers/progress_watch.h"

namespace shardproof {

void ProgressWatch::Begin(pid_t pid) {
  pid_ = pid;
  Moved();
}

void ProgressWatch::Moved() {
  const uint64_t beats = state_.progress.beats.load(), waits = state_.waits.load();
  waiting_ = beats == beats_ && waits != waits_;
  beats_ = beats;
  waits_ = waits;
  moved_ = Clock::now();
  still_.reset();
}

bool ProgressWatch::Stuck(double stall_seconds) {
  if (state_.progress.beats.load() != beats_ || state_.waits.load() != waits_) Moved();
  if (!still_) still_.emplace(pid_);
  const double patience = stall_seconds * (InEngine() ? 1 : 30);
  return StillSeconds() >= patience &&
         (still_->Ran() >= 0.8 * patience || still_->Free() >= kStallsOfASleeper * patience);
}

double ProgressWatch::StillSeconds() const {
  return std::chrono::duration<double>(Clock::now() - moved_).count();
}

bool ProgressWatch::InEngine() const { return state_.progress.rank.load() >= 0; }

std::string ProgressWatch::Where() const {
  if (!InEngine()) return "in the suite's own code";
  return (waiting_ ? "waiting for other ranks in " : "in engine code of ") +
         state_.progress.Where();
}

std::string SecondsText(double seconds) { return std::to_string(static_cast<int>(seconds)) + " s"; }

}  // namespace shardproof
