// rest.h: is everything that a rank has done over here, and does all that follows come after it?
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof::parts {

// Follows the rows of one rank. Knows what a host thread has waited for, by stream and thread, from
// what orders entries in program/rank_lowering.h; where it knows less, a rank is never at rest.
class RestWatch {
 public:
  // Rows come in order.
  void See(const Event& event);

  // Under every timing: all work of the rank so far is over when the thread of the last row goes
  // on, no request is open and no group of operations.
  bool AtRest() const;
  // A part begins behind the last row. REQUIRES: AtRest().
  void Cut();
  // Not empty: the last cut was none, as far as is known. A thread has gone on that nothing orders
  // behind it, or there are more streams and threads than are followed.
  const std::string& broken() const { return broken_; }
  // Of the last row.
  uint16_t thread() const { return thread_; }

 private:
  // By component, one for each stream and host thread: its last row that is over. 0: none.
  using Clock = std::vector<uint32_t>;
  static constexpr size_t kMostComponents = 64;  // with more it gives up
  struct Thread {
    int32_t component = -1;
    int32_t open_groups = 0;
    std::vector<int32_t> held;  // streams of the open group's operations
    bool behind_cut = false;
  };

  static void Join(Clock& to, const Clock& from);
  static void Raise(Clock& to, int32_t component, uint32_t row);
  int32_t Component(std::vector<int32_t>& of, int32_t id);
  Thread& ThreadOf(uint16_t id);
  // At its component: what precedes, and is, the last work there.
  Clock& ClockOf(int32_t component) { return clocks_[static_cast<size_t>(component)]; }

  void GiveUp();
  void OnStream(int32_t stream, const Clock& host);
  void Wait(const Event& event, Thread& thread);
  void HandOver(const Event& event, Thread& thread);
  void Collective(const Event& event, Thread& thread);
  void EndGroup(Thread& thread);
  void Work(const Event& event, Thread& thread);

  std::vector<int32_t> streams_;  // by id: component
  std::vector<Thread> threads_;   // by id
  std::vector<Clock> clocks_;     // by component
  std::vector<uint32_t> last_;    // by component: its last row
  std::unordered_map<int32_t, Clock> recorded_, posted_;
  std::unordered_map<int32_t, bool> pinned_;  // blocks that live
  int64_t open_requests_ = 0;
  uint32_t row_ = 0;  // since the cut, from 1
  uint16_t thread_ = 0;
  bool sync_ = false;  // the last row is one that a host waits in
  // Nobody need wait for it: a record or a wait only hands on what is behind it, and what comes
  // after a free may not touch its block anyway.
  bool passes_ = false;
  bool cut_ = false, gave_up_ = false;
  std::string broken_;
};

}  // namespace shardproof::parts
