#include "conformance/trace/row_rules.h"

#include <algorithm>

#include "conformance/abi/shardproof.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/trace/names.h"

namespace shardproof {
namespace {

namespace names = trace_names;

constexpr uint8_t kReduce = names::kFirstForeignCollective, kBarrier = kReduce + 1,
                  kScatter = kReduce + 3;

// Empty: no kind of collective has this number.
std::string_view OpName(uint8_t op) {
  if (op < names::kCollectives.size()) return names::kCollectives[op];
  return op >= kReduce && op <= kScatter ? names::kForeignCollectives[op - kReduce]
                                         : std::string_view();
}

bool HasPeer(uint8_t op) {
  return op == SPF_BROADCAST || op == SPF_SEND || op == SPF_RECV || op == kReduce || op > kBarrier;
}

}  // namespace

std::string RowRules::Needs(const Event& event, const char* key, const std::string& why) const {
  return "a " + std::string(names::kKinds[static_cast<size_t>(event.kind)]) +
         " event needs the key \"" + key + "\"" + why;
}

// REQUIRES: a group of the trace.
bool RowRules::Member(int32_t group) {
  while (member_.size() < trace_.groups.size()) {
    const std::vector<int32_t>& ranks = trace_.groups[member_.size()].world_ranks;
    member_.push_back(std::find(ranks.begin(), ranks.end(), trace_.rank) != ranks.end());
  }
  return At(member_, group);
}

std::string RowRules::See(const Event& event) {
  for (const int32_t group : {event.group, event.parent}) {
    if (group < 0 || Member(group)) continue;
    return "rank " + std::to_string(trace_.rank) + " is no member of group " +
           std::to_string(group) + " (\"" + At(trace_.groups, group).name +
           "\"), so it can neither use it nor wait for it";
  }
  if (event.kind == EventKind::kAlloc && event.id == SPF_PINNED) pinned_.insert(event.alloc);
  const bool block = event.kind == EventKind::kAlloc || event.kind == EventKind::kFree;
  if (block && event.stream < 0 && !pinned_.contains(event.alloc))
    return Needs(event, "s", ": device memory comes and goes in the order of a stream");
  const bool typed = event.kind == EventKind::kInit || event.kind == EventKind::kPublish;
  if (typed && !IsDtype(event.dtype)) return Needs(event, "ty", ": the dtype of its elements");
  switch (event.kind) {
    case EventKind::kCallBegin:
      return EntryCall(event);
    case EventKind::kCollective:
      return Collective(event);
    case EventKind::kRequestWait:
    case EventKind::kThreadPost:
    case EventKind::kThreadAwait:
      return HandOver(event);
    case EventKind::kGroupBegin:
    case EventKind::kGroupEnd:
      return Grouping(event);
    default:
      return "";
  }
}

std::string RowRules::Collective(const Event& event) {
  const std::string op(OpName(event.collective));
  if (op.empty())
    return "\"op\":" + std::to_string(event.collective) + " is no collective that FORMAT.md lists";
  const std::string of = ": of " + op;
  if (event.collective != kBarrier && !IsDtype(event.dtype)) return Needs(event, "ty", of);
  if (event.collective == kBarrier && !event.ranges.empty())
    return "a barrier moves no bytes: it has no \"r\"";
  if (HasPeer(event.collective) && event.peer < 0)
    return Needs(event, "p", of + ", its root or peer as a rank of the group");
  const size_t members = At(trace_.groups, event.group).world_ranks.size();
  const auto wrong = [&](const char* key, Slice counts, bool needed) -> std::string {
    if (counts.size() == members || (counts.empty() && !needed)) return "";
    if (counts.empty()) return Needs(event, key, of);
    return "\"" + std::string(key) + "\" has " + std::to_string(counts.size()) +
           " counts, the group has " + std::to_string(members) + " members: one for each";
  };
  const bool exchange = event.collective == SPF_ALL_TO_ALL_V;
  const std::string sent = wrong("sc", event.send_counts, exchange);
  if (!sent.empty()) return sent;
  const std::string received =
      wrong("rc", event.recv_counts, exchange || event.collective == SPF_ALL_GATHER_V);
  if (!received.empty() || event.request < 0) return received;
  if (event.stream >= 0)
    return "\"rq\" with \"s\": only an operation on the host is completed by a request_wait";
  requests_.insert(event.request);
  return "";
}

std::string RowRules::EntryCall(const Event& event) {
  const int32_t due = calls_[event.instance]++;
  if (event.call < 0 || event.call == due) return "";
  return "\"c\":" + std::to_string(event.call) + " where entry call " + std::to_string(due) +
         " of engine instance " + std::to_string(event.instance) + " begins";
}

std::string RowRules::HandOver(const Event& event) {
  const std::string number = std::to_string(event.id);
  if (event.id < 0) return Needs(event, "id", ", from 0");
  if (event.kind == EventKind::kRequestWait) {
    return requests_.contains(event.id)
               ? ""
               : "a wait for request " + number + ", which no collective with \"rq\":" + number +
                     " has started";
  }
  if (event.kind == EventKind::kThreadPost) {
    return posted_.insert(event.id).second
               ? ""
               : "hand-over " + number + " is posted twice: number them anew";
  }
  return posted_.contains(event.id)
             ? ""
             : "an await of hand-over " + number +
                   " before its post: rows stand in the order in which they happened";
}

std::string RowRules::Grouping(const Event& event) {
  int64_t& open = open_groups_[event.thread];
  open += event.kind == EventKind::kGroupBegin ? 1 : -1;
  if (open >= 0) return "";
  return "a group_end on host thread " + std::to_string(event.thread) +
         ", which has no open group_begin";
}

std::string RowRules::AtEnd(TraceEnd end) const {
  if (end != TraceEnd::kComplete) return "";  // the calls of an open group were never issued
  for (const auto& [thread, open] : open_groups_) {
    if (open > 0)
      return "host thread " + std::to_string(thread) +
             " has a group_begin without a group_end, so its collectives were never issued; a "
             "complete trace ends all groups";
  }
  return "";
}

}  // namespace shardproof
