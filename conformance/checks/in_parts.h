// in_parts.h: what is the verdict on a run of which each part was judged alone?
//
// Parts prove, the whole explains: where a part has a finding, or says something that the others do
// not, nothing follows, and the whole run must be judged. parts/README.md says what a part is.
#pragma once
#include <string>
#include <vector>

#include "conformance/checks/base/check.h"

namespace shardproof {

// What one part shows. A pure function; parts may be judged at the same time.
struct PartSaid {
  CheckResult result;
  bool any_range = false;
};
PartSaid CheckPart(std::vector<Trace> part);

// Of all parts, in their order.
class PartsVerdict {
 public:
  void Add(PartSaid said);
  // Empty: what was added so far says one thing. Else why the run must be judged whole.
  const std::string& whole() const { return whole_; }
  // What CheckAll says of the run. ends: of each rank its entry calls alone, with the trace's end;
  // outcomes: how they ended. REQUIRES: parts were added, and whole() is empty.
  CheckResult Conclude(std::vector<Trace> ends, std::vector<EngineOutcome> outcomes) &&;

 private:
  void AddRows(std::vector<NotCheckable> rows);
  void AddNotes(CheckResult* part);

  CheckResult all_;
  bool first_ = true, any_range_ = false;
  std::string whole_;
};

}  // namespace shardproof
