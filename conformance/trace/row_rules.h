// row_rules.h: can this row stand at this place of a trace?
//
// A row that means nothing would switch off every check that pairs or orders rows, so it is refused
// when it is read. The only place that says which rows mean nothing; FORMAT.md says it in words. No
// rule is broken by what an engine can make a recorder write.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof {

// Sees the rows of one trace in order.
class RowRules {
 public:
  // The trace's groups and strings may grow while rows are seen. It must outlive this.
  explicit RowRules(const Trace& trace) : trace_(trace) {}

  // What is wrong with the next row, as a sentence; empty: nothing.
  std::string See(const Event& event);
  // What the rows leave open that a trace with this end cannot; empty: nothing.
  std::string AtEnd(TraceEnd end) const;

 private:
  std::string Collective(const Event& event);
  std::string EntryCall(const Event& event);
  std::string HandOver(const Event& event);
  std::string Grouping(const Event& event);
  std::string Needs(const Event& event, const char* key, const std::string& why) const;
  bool Member(int32_t group);

  const Trace& trace_;
  std::vector<bool> member_;                 // by group: is the trace's rank in it?
  std::unordered_set<int32_t> pinned_;       // allocations
  std::unordered_set<int32_t> requests_;     // that were started
  std::unordered_set<int32_t> posted_;       // hand-overs
  std::map<uint16_t, int32_t> calls_;        // by engine instance: entry calls so far
  std::map<uint16_t, int64_t> open_groups_;  // by host thread: group_begin without group_end
};

}  // namespace shardproof
