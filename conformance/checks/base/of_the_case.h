// of_the_case.h: can these traces be of this case?
//
// They cannot if an event names an engine, an entry call, a parameter or a node that the case does
// not have. Whatever else is said about such traces misleads.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/checks/base/facts.h"
#include "conformance/trace/event.h"

namespace shardproof {

struct Stranger {
  int32_t rank = -1;
  int64_t event = -1;  // index into the rank's trace
  std::string what;    // "parameter 99"
};

// The first one, by rank and event. traces: by rank, as many as the case's world has ranks.
std::optional<Stranger> FindStranger(const std::vector<Trace>& traces,
                                     const std::vector<std::unique_ptr<InstanceFacts>>& instances);
// The same; nothing for an illegal case, which no engine runs, or one whose model cannot be built.
std::optional<Stranger> FindStranger(const std::vector<Trace>& traces, const Case& c);

// "rank 0, event 17, names parameter 99: the trace is not of this case"
std::string StrangerText(const Stranger& stranger);

}  // namespace shardproof
