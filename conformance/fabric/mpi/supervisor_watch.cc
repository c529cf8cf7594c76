// How a supervisor judges its child's progress, and how a case ends.
#include <signal.h>
#include <time.h>

#include <numeric>

#include "conformance/fabric/mpi/supervisor.h"
#include "conformance/fabric/process/process.h"

namespace shardproof::mpi {
namespace {

// Without progress, before a blocked rank is worth a question.
constexpr double kBlockedSeconds = 0.05;
constexpr double kGraceSeconds = 0.3;  // after an abort, for a rank that was stuck

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

double Supervisor::ChildCpuSeconds() const {
  clockid_t clock{};
  timespec spent{};
  if (clock_getcpuclockid(child_, &clock) != 0 || clock_gettime(clock, &spent) != 0) return 0;
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
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
    cpu_ = -1;
    if (!abort_) Report(Level::kRunning);
  }
  const double still = Since(progressed_);
  if (abort_) {
    const bool stuck = was_stalled_ && !(*shared_)->state.unwinding.load();
    const double grace = stuck ? kGraceSeconds : config_.options.stall_seconds;
    const double patience = 4 * config_.options.stall_seconds + 5;  // with one that goes on and on
    if ((Since(aborted_at_) < grace || still < grace) && Since(aborted_at_) < patience) return;
    wait_status_ = KillAndReap(child_);
    alive_ = false;
    killed_ = true;
    CarryOut();
    DropInbox();
    EndRank();
    return;
  }
  if (still < kBlockedSeconds) return;
  if (cpu_ < 0) cpu_ = ChildCpuSeconds();
  // On a busy machine wall time says little: an endless loop uses the processor, a sleeping engine
  // takes four times.
  const double stall = config_.options.stall_seconds;
  // Rank 0 decides about blocked ranks without a clock; should it ever not, the watchdog does.
  if (Quiet() && still <= 4 * stall) return Report(Level::kBlocked);
  if (still > stall && (ChildCpuSeconds() - cpu_ > 0.8 * stall || still > 4 * stall))
    return Report(Level::kStalled);
  if (level_ == Level::kBlocked) Report(Level::kRunning);
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
