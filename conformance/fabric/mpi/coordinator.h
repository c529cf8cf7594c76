// coordinator.h: can this case still go on, and if not, who waits for whom?
//
// Rank 0's view of a case: a pure state machine fed with the supervisors' messages. It ends a case
// when a rank asks for it, or when no unfinished rank can go on. The latter is exact, not a
// timeout, if all unfinished ranks are blocked: two rounds of questions, and as many messages
// received in the first as sent in the second (Mattern's four counters), so nothing can be under
// way. Only ranks that run without progress (an endless loop) need the watchdog's seconds.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/fabric/mpi/case_end.h"
#include "conformance/fabric/mpi/control.h"

namespace shardproof::mpi {

struct RankReport {
  RankEnd end;
  std::vector<int32_t> waits;  // ranks that it waited for when it was aborted
  std::vector<std::string> mismatches;
  std::vector<uint64_t> sent;  // messages, by destination
};
std::string PackReport(const RankReport& report);
RankReport UnpackReport(std::string_view packed);

// "rank 0 waits for rank 1, which waits for rank 0", then the ranks' details.
std::string HangReport(const std::vector<RankReport>& reports, const std::string& reason);

class Coordinator {
 public:
  explicit Coordinator(int world);
  void On(const ControlMessage& message);
  // Gives up whatever the ranks say: the case's time is over.
  void GiveUp(const std::string& reason) { given_up_ = reason; }

  // What to tell everybody now, if anything: kProbe or kAbort.
  std::optional<ControlMessage> Next();
  bool over() const;  // all results are in
  bool hang() const { return hang_; }
  const std::string& reason() const { return reason_; }
  const std::vector<RankReport>& reports() const { return reports_; }

 private:
  struct Rank {
    Level level = Level::kRunning;
    bool ended = false, answered = false, quiet = false;
    uint64_t sent = 0, received = 0;
  };
  std::optional<ControlMessage> Abort(AbortCause cause, const std::string& reason);
  std::optional<ControlMessage> Probe();
  bool NobodyCanGoOn();
  std::string Deaths() const;

  std::vector<Rank> ranks_;
  std::vector<RankReport> reports_;
  uint64_t wave_ = 0, first_received_ = 0;
  bool probing_ = false, second_ = false, certain_ = false;
  bool aborted_ = false, hang_ = false;
  std::string failure_, reason_, given_up_;
};

}  // namespace shardproof::mpi
