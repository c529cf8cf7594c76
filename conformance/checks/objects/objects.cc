#include "conformance/checks/objects/objects.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

namespace shardproof {

namespace {

struct Evidence {
  bool Provides::*field;
  const char* name;
};

// The first rank whose trace lacks one of these; empty: none.
std::string Lacking(const Analysis& a, std::initializer_list<Evidence> needed) {
  for (const Trace& trace : a.traces()) {
    for (const Evidence& one : needed) {
      if (!(trace.provides.*one.field))
        return "the trace of rank " + std::to_string(trace.rank) + " does not provide " + one.name;
    }
  }
  return "";
}

// Is there a row of which the requirement says something?
template <class Predicate>
bool AnyEvent(const Analysis& a, Predicate&& wanted) {
  return std::any_of(a.traces().begin(), a.traces().end(), [&](const Trace& trace) {
    return std::any_of(trace.events.begin(), trace.events.end(), wanted);
  });
}

bool OfBlocks(const Event& event) {
  return event.kind == EventKind::kAlloc || event.kind == EventKind::kFree || !event.ranges.empty();
}
bool OfHandles(const Event& event) {
  return event.stream >= 0 || event.event >= 0 || event.group >= 0 || event.parent >= 0;
}

}  // namespace

CheckResult CheckObjects(const Analysis& a) {
  CheckResult result;
  {
    FindingSink sink(result);
    for (int32_t rank = 0; rank < a.ranks(); ++rank) {
      if (a.trace(rank).provides.memory) FollowBlocks(a, rank, sink);
      FollowHandles(a, rank, sink);
    }
    FollowCommunicators(a, sink);
  }
  const std::string memory = Lacking(a, {{&Provides::memory, "memory"}});
  const std::string handles = Lacking(a, {{&Provides::groups, "groups"},
                                          {&Provides::collectives, "collectives"},
                                          {&Provides::sync, "sync"}});
  if (!memory.empty()) {
    CannotJudge(result, {"GE-18"}, memory);
  } else if (AnyEvent(a, OfBlocks)) {
    Judge(result, {"GE-18"});
  }
  if (!handles.empty()) {
    CannotJudge(result, {"GE-19"}, handles);
  } else if (AnyEvent(a, OfHandles)) {
    Judge(result, {"GE-19"});
  }
  return result;
}

}  // namespace shardproof
