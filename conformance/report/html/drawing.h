// drawing.h: what of a run's traces does the picture of one finding show?
//
// The neighbourhood of the finding: lanes for each rank and stream, the operations around the event
// that it names, around what it is not ordered with and around those that meet it on other ranks.
// Beside it, for what bounds memory, how much its rank holds (memory_curve.h).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/base/check.h"

namespace shardproof {

struct Drawing {
  struct Lane {
    int32_t rank = 0;
    std::string name;  // "host", "stream comm"
  };
  enum class Role : uint8_t {
    kNone,
    kFinding,  // where the finding shows
    kPartner,  // what it is not ordered with, or what meets it on another rank
    kWaits     // in the circle
  };
  struct Node {
    size_t lane = 0;
    int64_t event = 0;  // index into the rank's trace
    int32_t column = 0;
    Role role = Role::kNone;
    std::string kind, text;
  };
  enum class LinkKind : uint8_t {
    kEvent,      // a record and what waits for it
    kMeets,      // parts of one collective, or a message, on two ranks
    kUnordered,  // two that nothing orders
    kCircle      // the former waits for the latter
  };
  struct Link {
    size_t from = 0, to = 0;  // places in nodes
    LinkKind kind = LinkKind::kEvent;
  };
  std::vector<Lane> lanes;
  std::vector<Node> nodes;  // rank by rank, in issue order
  std::vector<Link> links;
};

// At most so many nodes of a rank are drawn.
inline constexpr size_t kDrawnOfARank = 60;
inline constexpr size_t kRanksDrawn = 4;
// Findings of one case that have a picture: the first that stand for themselves.
inline constexpr size_t kDrawnOfACase = 4;

// How an event is called: rank, index into its trace.
using EventName = std::function<std::string(int32_t rank, int64_t event)>;

// Without nodes if the traces have nothing of where the finding is.
Drawing DrawFinding(const std::vector<Trace>& traces, const Finding& finding,
                    const EventName& name);

// By place in the list of findings; in JSON, as report.html has it.
std::map<size_t, std::string> DrawFindings(const std::vector<Trace>& traces,
                                           const std::vector<Finding>& findings,
                                           const EventName& name);

// Events that a text names, in its order: as "rank 3, event 17", and behind that as "(event 12)" of
// the same rank.
std::vector<std::pair<int32_t, int64_t>> NamedEvents(const std::string& text);

}  // namespace shardproof
