// How a supervisor judges its child's progress, and how a case ends.
#include <signal.h>
#include <unistd.h>

#include <numeric>

#include "conformance/fabric/mpi/supervisor.h"
#include "conformance/fabric/process/process.h"

namespace shardproof::mpi {
namespace {

// Without progress, before a blocked rank is worth a question.
constexpr double kBlockedSeconds = 0.05;
constexpr double kGraceSeconds = 0.3;  // after an abort, for a rank that was stuck
constexpr double kLookSeconds = 0.1;   // between two looks at what the child has used

}  // namespace

std::string Supervisor::StateText() const {
  const ChildState& state = (*shared_)->state;
  const char* call = state.call.load();
  std::string text;
  if (posted_result_) {
    text = "at its end";
  } else if (call == nullptr) {
    text = "in engine code before its first call";
  } else if (state.blocking.load()) {
    text = std::string("blocked in ") + call + " " + state.call_about;
  } else {
    text = std::string("in engine code since ") + call + " (call #" +
           std::to_string(state.calls.load()) + ")";
  }
  if (state.body[0] != '\0') text += std::string(", its device runs ") + state.body;
  return text;
}

// Nothing of this rank can move before a message comes.
bool Supervisor::Quiet() const {
  const ChildState& state = (*shared_)->state;
  if (!data_->idle()) return false;
  if (!alive_) return reported_;
  return state.host.Asleep() && state.device.Asleep() && to_child_.AllTaken() &&
         from_child_.empty();
}

void Supervisor::Report(Level level) {
  if (level == level_) return;
  level_ = level;
  Tell(0, ControlKind::kStatus, {static_cast<uint64_t>(level)}, "");
}

void Supervisor::Watch() {
  if (!alive_) return;
  const uint64_t progress = (*shared_)->state.progress.load();
  if (progress != progress_) {
    progress_ = progress;
    progressed_ = now_;
    still_.reset();
    if (!abort_) Report(Level::kRunning);
  }
  if (abort_) {
    if (TimeToKill()) KillChild();
    return;
  }
  if (Since(progressed_) < kBlockedSeconds) return;
  if (!still_) still_.emplace(keeper_.pid());
  // Who waits for others is never stuck, however long it takes: rank 0 decides about blocked ranks
  // without a clock, and the time limit of a case stands behind it.
  if (Quiet()) return Report(Level::kBlocked);
  if (Stuck()) return Report(Level::kStalled);
  if (level_ == Level::kBlocked) Report(Level::kRunning);
}

// An endless loop uses the processor; code that sleeps has four times as long, by the clock. Time
// in which the machine was busy with others counts for neither.
bool Supervisor::Stuck() {
  const double stall = config_.options.stall_seconds;
  if (Since(progressed_) <= stall) return false;
  if (Since(looked_at_) < kLookSeconds) return level_ == Level::kStalled;
  looked_at_ = now_;
  return still_->Ran() > 0.8 * stall || still_->Free() > 4 * stall;
}

bool Supervisor::TimeToKill() {
  const bool stuck = was_stalled_ && !(*shared_)->state.unwinding.load();
  const double grace = stuck ? kGraceSeconds : config_.options.stall_seconds;
  if (Since(aborted_at_) < grace || Since(looked_at_) < kLookSeconds) return false;
  looked_at_ = now_;
  const double patience = 4 * config_.options.stall_seconds + 5;  // with one that goes on and on
  const double free = since_abort_->Free();
  return free >= patience || (free >= grace && Since(progressed_) >= grace);
}

// Of one that is about to be ended, since a signal wakes what sleeps. None answers that blocks
// signals.
void Supervisor::AskForStack() {
  constexpr int kTries = 500;
  kill(keeper_.pid(), StackSignal());
  const LastStack& stack = (*shared_)->state.stack;
  for (int i = 0; i < kTries && stack.frames.load() == 0; ++i) usleep(1000);
}

void Supervisor::KillChild() {
  if (was_stalled_) AskForStack();
  keeper_.Kill();
  killed_ = true;
  ChildEnded();
  EndRank();
}

void Supervisor::Decide() {
  if (ends_sent_) return;
  if (Since(began_) > config_.options.limit_seconds) {
    coordinator_->GiveUp("the case did not end within " +
                         std::to_string(config_.options.limit_seconds) + " seconds");
  }
  if (const auto message = coordinator_->Next()) {
    for (int32_t rank = 0; rank < config_.world; ++rank)
      Tell(rank, message->kind, message->numbers, message->text);
  }
  if (coordinator_->over()) SendEnds();
}

void Supervisor::SendEnds() {
  ends_sent_ = true;
  const std::string text =
      coordinator_->hang() ? HangReport(coordinator_->reports(), coordinator_->reason()) : "";
  for (int32_t rank = 0; rank < config_.size; ++rank) {
    std::vector<uint64_t> numbers{coordinator_->hang()};
    for (const RankReport& report : coordinator_->reports()) {
      numbers.push_back(static_cast<size_t>(rank) < report.sent.size()
                            ? report.sent[static_cast<size_t>(rank)]
                            : 0);
    }
    Tell(rank, ControlKind::kEnd, numbers, text);
  }
}

// The case is over for all, and none of its messages is under way to or from here.
bool Supervisor::Drained() const {
  if (!end_ || !data_->idle() || !control_->idle()) return false;
  for (size_t rank = 0; rank + 1 < end_->numbers.size(); ++rank) {
    if (data_->received()[rank] < end_->numbers[rank + 1]) return false;
  }
  return true;
}

}  // namespace shardproof::mpi
