// supervisor.h: what does an MPI process do during a case?
//
// It never runs engine code. It forks the child that does, carries the child's messages, watches
// its progress, and tells rank 0 how it ended. One Supervisor per process and case.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/fabric/fabric.h"
#include "conformance/fabric/mpi/case_end.h"
#include "conformance/fabric/mpi/coordinator.h"
#include "conformance/fabric/mpi/polite_wait.h"
#include "conformance/fabric/mpi/post_office.h"
#include "conformance/fabric/mpi/shared.h"
#include "conformance/fabric/process/keeper.h"
#include "conformance/fabric/process/printed_file.h"
#include "conformance/fabric/process/process_time.h"

namespace shardproof::mpi {

struct SupervisorConfig {
  int rank = 0, size = 1, world = 1;  // size: processes; world: how many of them take part
  uint64_t epoch = 0;
  MpiOptions options;
};

class Supervisor {
 public:
  Supervisor(const SupervisorConfig& config, DataPost* data, ControlPost* control,
             SharedMemory* shared);
  CaseEnd Run(const std::function<std::string(Fabric&)>& rank_main);

 private:
  using Clock = std::chrono::steady_clock;

  void StartChild(const std::function<std::string(Fabric&)>& rank_main);
  bool Turn();  // one round of everything; true if anything happened
  bool CarryOut();
  void FromChild(const Posted& posted);
  void DropInbox();
  bool TakeControl();
  void On(const ControlMessage& message);
  void Reap();
  void EndRank();
  void EndByItself();
  void TellWhatItWaitedFor();
  void Watch();
  bool Stuck();       // it runs, or sleeps, without progress
  bool TimeToKill();  // after an abort
  void AskForStack();
  void KillChild();
  void Decide();  // rank 0
  void SendEnds();

  bool takes_part() const { return config_.rank < config_.world; }
  bool Quiet() const;
  bool Drained() const;
  void ChildEnded();
  double Since(Clock::time_point then) const {
    return std::chrono::duration<double>(now_ - then).count();
  }
  std::string StateText() const;
  void TellWhereItWas();
  void Tell(int32_t to, ControlKind kind, std::vector<uint64_t> numbers, std::string text);
  void Report(Level level);

  SupervisorConfig config_;
  DataPost* data_;
  ControlPost* control_;
  SharedMemory* shared_;
  ChannelSender to_child_;
  ChannelReceiver from_child_;
  std::optional<Coordinator> coordinator_;  // rank 0

  Keeper keeper_;                       // of the child
  std::optional<PrintedFile> printed_;  // by the child
  bool alive_ = false, posted_result_ = false, reported_ = false, killed_ = false, failed_ = false;
  int wait_status_ = 0;
  RankReport report_;
  std::string pending_;
  std::string state_at_abort_;

  Level level_ = Level::kRunning;
  bool was_stalled_ = false;
  uint64_t progress_ = 0;
  Clock::time_point now_, began_, progressed_, aborted_at_, looked_at_;
  std::optional<Span> still_, since_abort_;  // of the child: without progress; since the abort
  std::optional<AbortCause> abort_;
  std::string abort_reason_;

  std::optional<ControlMessage> end_;
  bool ends_sent_ = false;
  // For anything that happens.
  PoliteWait wait_{config_.world, config_.options.looks_steadily ? PoliteWait::kSteadily
                                                                 : PoliteWait::kLessAndLess};
};

}  // namespace shardproof::mpi
