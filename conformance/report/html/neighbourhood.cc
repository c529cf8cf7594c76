#include "conformance/report/html/neighbourhood.h"

#include <algorithm>

#include "conformance/abi/shardproof.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

constexpr size_t kBefore = 10, kAfter = 5;

bool IsBlock(EventKind kind) {
  return kind == EventKind::kAlloc || kind == EventKind::kFree || kind == EventKind::kRelease;
}

bool IsDrawn(EventKind kind) {
  switch (kind) {
    case EventKind::kCallBegin:
    case EventKind::kGroupCreate:
    case EventKind::kStreamSync:
    case EventKind::kRecord:
    case EventKind::kWait:
    case EventKind::kEventSync:
    case EventKind::kDeviceSync:
    case EventKind::kCopy:
    case EventKind::kHostAccess:
    case EventKind::kCollective:
    case EventKind::kRequestWait:
    case EventKind::kCompute:
    case EventKind::kLaunch:
    case EventKind::kInit:
    case EventKind::kPublish:
    case EventKind::kRefused:
    case EventKind::kNoMemory:
      return true;
    default:
      return false;
  }
}

// Blocks that the events touch.
std::set<int32_t> BlocksOf(const Trace& trace, const std::set<int64_t>& events) {
  std::set<int32_t> blocks;
  for (const int64_t index : events) {
    const Event& event = At(trace.events, index);
    if (event.alloc >= 0) blocks.insert(event.alloc);
    for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i)
      blocks.insert(trace.ranges[i].alloc);
  }
  return blocks;
}

}  // namespace

std::vector<std::map<int64_t, Meeting>> MeetingsOf(const std::vector<Trace>& traces) {
  std::vector<std::map<int64_t, Meeting>> meetings;
  for (const Trace& trace : traces) {
    std::map<int64_t, Meeting>& mine = meetings.emplace_back();
    std::map<std::tuple<std::string, int32_t, int32_t>, int64_t> seen;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind != EventKind::kCollective || event.group < 0) continue;
      const GroupInfo& group = At(trace.groups, event.group);
      int32_t from = -1, to = -1;
      if (event.collective == SPF_SEND || event.collective == SPF_RECV) {
        if (event.peer < 0 || event.peer >= Length(group.world_ranks)) continue;
        const int32_t peer = At(group.world_ranks, event.peer);
        from = event.collective == SPF_SEND ? trace.rank : peer;
        to = event.collective == SPF_SEND ? peer : trace.rank;
      }
      const int64_t n = seen[{group.comm, from, to}]++;
      mine[static_cast<int64_t>(i)] = {group.comm, from, to, n};
    }
  }
  return meetings;
}

std::vector<std::vector<int32_t>> ColumnsOf(const std::vector<std::vector<const Meeting*>>& ranks) {
  std::map<Meeting, size_t> together;
  for (const auto& rank : ranks) {
    for (const Meeting* meeting : rank) {
      if (meeting != nullptr) ++together[*meeting];
    }
  }
  std::vector<std::vector<int32_t>> columns(ranks.size());
  std::vector<int32_t> next(ranks.size(), 0);
  const auto place = [&](size_t r, int32_t column) {
    columns[r].push_back(column);
    next[r] = column + 1;
  };
  // What the rank's next event meets, if others are to be waited for.
  const auto waiting = [&](size_t r) -> const Meeting* {
    if (columns[r].size() == ranks[r].size()) return nullptr;
    const Meeting* meeting = ranks[r][columns[r].size()];
    return meeting != nullptr && together[*meeting] > 1 ? meeting : nullptr;
  };
  for (;;) {
    std::map<Meeting, std::vector<size_t>> here;
    for (size_t r = 0; r < ranks.size(); ++r) {
      while (columns[r].size() < ranks[r].size() && waiting(r) == nullptr) place(r, next[r]);
      if (const Meeting* meeting = waiting(r)) here[*meeting].push_back(r);
    }
    if (here.empty()) return columns;
    const auto whole = std::find_if(here.begin(), here.end(), [&](const auto& row) {
      return row.second.size() == together[row.first];
    });
    if (whole == here.end()) {  // they come in different orders
      together[here.begin()->first] = 1;
      continue;
    }
    int32_t column = 0;
    for (const size_t r : whole->second) column = std::max(column, next[r]);
    for (const size_t r : whole->second) place(r, column);
  }
}

int64_t RecordOf(const Trace& trace, int64_t wait) {
  const Event& waiting = At(trace.events, wait);
  if (waiting.kind != EventKind::kWait && waiting.kind != EventKind::kEventSync) return -1;
  for (int64_t i = wait - 1; i >= 0; --i) {
    const Event& event = At(trace.events, i);
    if (event.kind == EventKind::kRecord && event.event == waiting.event) return i;
  }
  return -1;
}

std::set<int64_t> Around(const Trace& trace, const std::set<int64_t>& focus, size_t most) {
  std::vector<int64_t> drawn;
  const std::set<int32_t> blocks = BlocksOf(trace, focus);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    const auto index = static_cast<int64_t>(i);
    if (IsDrawn(event.kind) || focus.contains(index) ||
        (IsBlock(event.kind) && blocks.contains(event.alloc)))
      drawn.push_back(index);
  }
  std::set<int64_t> shown;
  for (const int64_t index : focus) {
    if (shown.size() < most) shown.insert(index);
  }
  // Rings around each of them, the nearest first.
  for (size_t far = 1; far <= std::max(kBefore, kAfter); ++far) {
    for (const int64_t index : focus) {
      const auto at =
          static_cast<size_t>(std::lower_bound(drawn.begin(), drawn.end(), index) - drawn.begin());
      if (far <= kBefore && at >= far && shown.size() < most) shown.insert(drawn[at - far]);
      if (far <= kAfter && at + far < drawn.size() && shown.size() < most)
        shown.insert(drawn[at + far]);
    }
  }
  for (const int64_t index : std::set<int64_t>(shown)) {
    const int64_t record = RecordOf(trace, index);
    if (record >= 0 && shown.size() < most) shown.insert(record);
  }
  return shown;
}

}  // namespace shardproof
