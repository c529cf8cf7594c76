// edges.h: which synchronisations of one rank does an engine need?
//
// A case is run once. Then each wait, event sync and stream sync of the rank is left out in a run
// of its own: either the checks find what breaks, or a proof says by which others its order is
// given all the same. What is neither is not covered: the suite would not notice if it were
// missing.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/host/faulty.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

enum class EdgeKind : uint8_t { kNeeded, kImplied, kOrdersNothing, kNotCovered };
const char* EdgeKindName(EdgeKind kind);

struct EdgeRow {
  std::string call;    // "event_wait"
  int64_t nth = 0;     // among the calls of that name
  int64_t event = 0;   // in the rank's trace
  std::string stream;  // that waits, or "host"
  EdgeKind kind = EdgeKind::kNotCovered;
  std::string text;  // what breaks without it, or the proof
};

class EdgeReport {
 public:
  // Throws std::invalid_argument that says what is wrong without any fault, or that the case has
  // no such rank, several legs or is illegal. c outlives it.
  EdgeReport(const Case& c, const RunCase& run, const SimRunOptions& options, int32_t rank);

  size_t size() const { return edges_.size(); }
  // What is known before a run: no verdict.
  const EdgeRow& at(size_t place) const { return edges_.at(place); }
  // Runs the case without the synchronisation at this place.
  EdgeRow Judge(size_t place, const RunCase& run) const;
  // Synchronisations that order something and that no call of the engine was found for.
  size_t untried() const { return untried_; }

 private:
  void FindEdges();
  const Case& case_;
  SimRunOptions options_;
  const int32_t rank_;
  RunData good_;
  std::vector<EdgeRow> edges_;
  std::set<int64_t> orders_;  // events that wait for something
  size_t untried_ = 0;
};

}  // namespace shardproof
