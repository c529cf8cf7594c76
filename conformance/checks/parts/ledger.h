// ledger.h: what of one rank goes on from part to part, and what can only the whole run show?
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof::parts {

// Follows the rows of one rank: which numbers are in use, and by what.
class Ledger {
 public:
  // trace: the tables that rows refer to; it must outlive this.
  explicit Ledger(const Trace& trace) : trace_(trace) {}

  void See(const Event& event);
  // Groups that came with no row behind them.
  void SeeTables();
  // Empty: nothing so far needs the whole run. Else what does, in words.
  const std::string& whole() const { return whole_; }
  // A part may end behind the last row, as far as objects go.
  bool may_cut() const { return may_cut_; }
  void Cut();

  // The rows that a part begins with, issued by one thread and over: streams, for their priorities,
  // blocks that live, events that were recorded and live. What else a row may refer to needs no
  // creation in a trace.
  void Begin(Trace& part, uint16_t thread) const;
  // How many rows those are.
  size_t live() const { return made_streams_.size() + blocks_.size() + recorded_.size(); }

  // The rows that tell how the rank ended.
  const std::vector<Event>& calls() const { return calls_; }
  // By communicator: bit 0, used by the host; bit 1, from streams.
  std::map<std::string, int> UsesOfCommunicators() const;

 private:
  enum class State : uint8_t { kUnknown, kUsed, kCreated, kGone };
  struct Block {
    Event made, released;
    bool is_released = false;
  };

  void Whole(std::string why);
  void Create(std::vector<State>& of, int32_t id, const char* what);
  void Destroy(std::vector<State>& of, int32_t id);
  void Use(std::vector<State>& of, int32_t id, const char* what);
  void Kinds(const Event& event);
  void Blocks(const Event& event);
  void Calls(const Event& event);
  void Groups(const Event& event);

  const Trace& trace_;
  std::string whole_;
  bool cut_ = false, may_cut_ = true;
  size_t groups_at_cut_ = 0;                      // in the trace's table, at the first cut
  std::vector<State> streams_, events_, allocs_;  // by id
  int64_t handles_ = 0;                           // streams and events that a row made, and live
  std::set<int32_t> groups_;                      // that a row made, and live
  std::map<int32_t, Event> made_streams_;         // by a row, and live
  std::unordered_map<int32_t, Block> blocks_;     // that live
  std::unordered_map<int32_t, Event> recorded_;   // the last record of each event that lives
  std::vector<uint8_t> uses_;                     // by group: bits as above
  std::vector<Event> calls_;
};

}  // namespace shardproof::parts
