#include "conformance/fabric/mpi/supervisor.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "conformance/fabric/mpi/child.h"
#include "conformance/fabric/mpi/wire.h"
#include "conformance/fabric/process/process.h"

namespace shardproof::mpi {
Supervisor::Supervisor(const SupervisorConfig& config, DataPost* data, ControlPost* control,
                       SharedMemory* shared)
    : config_(config),
      data_(data),
      control_(control),
      shared_(shared),
      to_child_(&(*shared)->to_child, shared->heap_to_child(), shared->heap_bytes()),
      from_child_(&(*shared)->to_supervisor) {
  if (config_.rank == 0) coordinator_.emplace(config_.world);
}

CaseEnd Supervisor::Run(const std::function<std::string(Fabric&)>& rank_main) {
  now_ = began_ = progressed_ = Clock::now();
  data_->Begin(config_.epoch);
  if (takes_part()) StartChild(rank_main);
  while (!Drained()) {
    if (config_.options.waiting) config_.options.waiting();
    if (Turn()) {
      wait_.Restart();
    } else {
      wait_.Rest();
    }
  }
  CaseEnd end;
  end.hang = end_->numbers[0] != 0;
  end.hang_report = end_->text;
  end.ranks.resize(static_cast<size_t>(config_.world));
  if (takes_part()) end.ranks[static_cast<size_t>(config_.rank)] = report_.end;
  if (!coordinator_) return end;
  for (size_t rank = 0; rank < end.ranks.size(); ++rank) {
    const RankReport& report = coordinator_->reports()[rank];
    end.ranks[rank] = report.end;
    end.mismatches.insert(end.mismatches.end(), report.mismatches.begin(), report.mismatches.end());
  }
  return end;
}

void Supervisor::StartChild(const std::function<std::string(Fabric&)>& rank_main) {
  MachineConfig machine;
  machine.rank = config_.rank;
  machine.world = config_.world;
  machine.epoch = config_.epoch;
  machine.arena_bytes = config_.options.arena_bytes;
  machine.lasts_us = config_.options.lasts_us;
  machine.apart = config_.options.apart;
  printed_.emplace();
  const auto body = [&] {
    printed_->TakeOutput();
    try {
      RunChild(machine, *shared_, rank_main);
    } catch (const std::exception& error) {  // before the machine was there
      std::snprintf((*shared_)->state.last_words, sizeof(*shared_)->state.last_words, "%s",
                    error.what());
    }
    _exit(1);
  };
  keeper_.Start(body, {printed_->file()});
  alive_ = true;
}

void Supervisor::Tell(int32_t to, ControlKind kind, std::vector<uint64_t> numbers,
                      std::string text) {
  ControlMessage message;
  message.epoch = config_.epoch;
  message.kind = kind;
  message.numbers = std::move(numbers);
  message.text = std::move(text);
  control_->Send(to, std::move(message));
}

bool Supervisor::Turn() {
  now_ = Clock::now();
  bool worked = CarryOut();
  to_child_.Flush();
  worked |= data_->Pump([this](uint64_t bytes) { return to_child_.Allocate(bytes); },
                        [this](std::byte* data, uint64_t bytes) {
                          to_child_.Post({data, bytes, config_.rank});
                          if (alive_) {
                            (*shared_)->state.device.RaiseLate();
                          } else {
                            DropInbox();
                          }
                        },
                        [this](std::byte* data) { from_child_.Return(data); });
  worked |= control_->Pump();
  worked |= TakeControl();
  if (alive_) (*shared_)->state.device.WakeLate();
  Reap();
  Watch();
  if (coordinator_) Decide();
  return worked;
}

// Nobody reads any more: what arrives lands in a fresh heap and is forgotten.
void Supervisor::DropInbox() {
  to_child_.Flush();
  ChannelReceiver dead(&(*shared_)->to_child);
  Posted posted;
  while (dead.Take(&posted)) {
  }
  to_child_ = ChannelSender(&(*shared_)->to_child, shared_->heap_to_child(), shared_->heap_bytes());
}

bool Supervisor::CarryOut() {
  bool any = false;
  Posted posted;
  while (from_child_.Take(&posted)) {
    any = true;
    if (!shared_->HoldsForSupervisor(posted.data, posted.bytes)) continue;  // overwritten memory
    if (posted.to == kToSupervisor) {
      FromChild(posted);
      from_child_.Return(posted.data);
    } else if (posted.to >= 0 && posted.to < config_.world) {
      data_->Send(posted.to, posted.data, posted.bytes);
    }
  }
  return any;
}

void Supervisor::FromChild(const Posted& posted) {
  const auto message = ReadMessage(posted.data, posted.bytes);
  if (!message) return;
  const std::string text(reinterpret_cast<const char*>(message->payload), message->header.payload);
  switch (message->header.kind) {
    case MessageKind::kReturned:
      posted_result_ = true;
      report_.end.returned = true;
      report_.end.blob = text;
      break;
    case MessageKind::kException:
      posted_result_ = true;
      report_.end.kind = RankEnd::kException;
      report_.end.detail = "an exception: " + text;
      break;
    case MessageKind::kMismatch:
      if (report_.mismatches.size() < 64) report_.mismatches.push_back(text);
      break;
    case MessageKind::kFailed:
      failed_ = true;
      report_.end.detail = "failed: " + text;
      Tell(0, ControlKind::kFailed, {}, text);
      break;
    case MessageKind::kPending:
      pending_ = text;
      break;
    default:
      break;
  }
}

bool Supervisor::TakeControl() {
  bool any = false;
  while (auto message = control_->Take(config_.epoch)) {
    any = true;
    On(*message);
  }
  return any;
}

void Supervisor::On(const ControlMessage& message) {
  switch (message.kind) {
    case ControlKind::kProbe: {
      const auto& sent = data_->sent();
      const auto& received = data_->received();
      Tell(0, ControlKind::kAnswer,
           {message.numbers[0], Quiet(), std::accumulate(sent.begin(), sent.end(), uint64_t{0}),
            std::accumulate(received.begin(), received.end(), uint64_t{0})},
           "");
      return;
    }
    case ControlKind::kAbort:
      abort_ = static_cast<AbortCause>(message.numbers[0]);
      abort_reason_ = message.text;
      aborted_at_ = now_;
      was_stalled_ = level_ == Level::kStalled;
      if (!takes_part() || reported_) return;
      since_abort_.emplace(keeper_.pid());
      if (!posted_result_) TellWhereItWas();
      state_at_abort_ = (was_stalled_ ? "without progress, " : "") + StateText();
      (*shared_)->state.abort.store(1);
      (*shared_)->state.device.Raise();
      (*shared_)->state.host.Raise();
      return;
    case ControlKind::kEnd:
      end_ = message;
      return;
    default:
      if (coordinator_) coordinator_->On(message);
      return;
  }
}

void Supervisor::Reap() {
  if (!takes_part() || reported_) return;
  if (alive_ && keeper_.Ended()) ChildEnded();
  if (!alive_) EndRank();
}

// It and all that it had started are gone.
void Supervisor::ChildEnded() {
  alive_ = false;
  CarryOut();
  DropInbox();
  const KeptEnd& end = keeper_.end();
  wait_status_ = end.known ? end.status : SIGKILL;
  if (!end.known) posted_result_ = report_.end.returned = false;  // nobody knows what still ran
  if (posted_result_ && end.left > 0) report_.end.left = LeftText(end);
}

// The child is gone and all that it had posted is on its way: this rank's last word.
void Supervisor::EndRank() {
  RankEnd& end = report_.end;
  const bool hang = abort_ && *abort_ == AbortCause::kHang;
  if (killed_) {
    end.kind = hang || failed_ ? RankEnd::kHung : RankEnd::kAborted;
    if (failed_)
      state_at_abort_ = end.detail + "; it did not return after that, " + state_at_abort_;
  } else if (!posted_result_) {
    EndByItself();
  } else if (abort_ && end.returned && !pending_.empty() && !failed_) {
    end.kind = hang ? RankEnd::kHung : RankEnd::kAborted;
  }
  if (end.kind == RankEnd::kHung || end.kind == RankEnd::kAborted) TellWhatItWaitedFor();
  if (killed_ && was_stalled_)
    end.detail += StackText(LinesOf((*shared_)->state.stack, kStackLines));
  if (printed_) end.printed = ClippedPrint(printed_->All());
  report_.sent = data_->sent();
  reported_ = true;
  Tell(0, ControlKind::kResult, {}, PackReport(report_));
}

void Supervisor::TellWhereItWas() {
  if (config_.options.where) report_.end.where = config_.options.where();
}

void Supervisor::EndByItself() {
  if (!abort_) TellWhereItWas();
  const ProcessEnd process = DescribeWaitStatus(wait_status_);
  const std::string words = (*shared_)->state.last_words;
  const bool crashed = process.kind == ProcessEnd::Kind::kSignal;
  report_.end.kind = crashed ? RankEnd::kSignal : RankEnd::kExit;
  report_.end.detail = (crashed ? "ended by " : "the process left before the run was over, with ") +
                       process.text + (words.empty() ? "" : ": " + words) + "; it was " +
                       StateText() + StackText(LinesOf((*shared_)->state.stack, kStackLines));
}

// pending_: the ranks that it waited for, then a line for each operation.
void Supervisor::TellWhatItWaitedFor() {
  RankEnd& end = report_.end;
  end.detail =
      (end.kind == RankEnd::kAborted ? "ended because of " + abort_reason_ + "; it was " : "") +
      state_at_abort_;
  const size_t first = pending_.find('\n');
  if (first == std::string::npos) return;
  std::string lines = "\n" + pending_.substr(first + 1);
  while (!lines.empty() && lines.back() == '\n') lines.pop_back();
  for (size_t at = lines.find('\n'); at != std::string::npos; at = lines.find('\n', at + 3))
    lines.replace(at, 1, "\n  ");
  end.detail += lines;
  for (char* at = pending_.data(); *at != '\n';)
    report_.waits.push_back(static_cast<int32_t>(std::strtol(at, &at, 10)));
}

}  // namespace shardproof::mpi
