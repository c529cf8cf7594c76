// Memory of gathered parameters, gradients and values: nobody takes it before all who use it are
// through.
#include <map>
#include <set>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/schedule/rank_check.h"
#include "conformance/checks/schedule/residency.h"
#include "conformance/checks/schedule/schedule.h"
#include "conformance/common/at.h"

namespace shardproof::schedule {

namespace {

class Buffers : RankCheck {
 public:
  Buffers(const Facts& facts, int32_t rank, const Ordering& ordering, CheckResult& result,
          FindingSink& sink)
      : RankCheck(facts, rank, result, sink), ordering_(ordering) {}

  void Run() {
    FindUsers();
    JudgeReductions();
    JudgeValues();
    if (a_.has_flow()) JudgeResidents();
  }

 private:
  void JudgeOrder(const char* requirement, int64_t first, int64_t second,
                  const std::string& message) {
    if (first == second || ordering_.Precedes(rank_, first, second)) return;
    AddUnordered(requirement, first, second, message);
  }
  void FindUsers() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == EventKind::kFree) users_[event.alloc].push_back(static_cast<int64_t>(i));
      for (uint32_t r = event.ranges.begin; r < event.ranges.end; ++r) {
        users_[trace_.ranges[r].alloc].push_back(static_cast<int64_t>(i));
      }
    }
  }
  void JudgeResidents() {
    for (const Resident& resident : FindResidents(a_, rank_)) {
      if (!facts_.Overlaps(size_t(resident.instance)) || resident.release < 0) continue;
      // A release is no write: what a pool does with the block then is the race check's to judge.
      if (At(trace_.events, resident.release).kind == EventKind::kRelease) continue;
      Judge(result_, {"EP-10", "EP-12"});
      JudgeOrder("EP-10", resident.last_gather, resident.release,
                 Text(a_, rank_, resident) + " are released while their gather is in flight");
      std::map<int32_t, int64_t> last;  // by stream
      for (const int64_t read : resident.reads) last[At(trace_.events, read).stream] = read;
      for (const auto& [stream, read] : last) {
        JudgeOrder("EP-12", read, resident.release,
                   "memory of " + Text(a_, rank_, resident) +
                       " is given back before a stream has read it");
      }
    }
  }
  void JudgeReductions() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      const bool reduces = event.kind == EventKind::kCollective && IsReduction(event.collective) &&
                           event.group >= 0 &&
                           At(trace_.groups, event.group).world_ranks.size() > 1;
      if (!reduces || !facts_.Overlaps(event.instance)) continue;
      Judge(result_, {"EP-19", "EP-24"});
      for (const Range* range : {SendRange(trace_, event), RecvRange(trace_, event)}) {
        if (range != nullptr) JudgeAround(static_cast<int64_t>(i), *range, users_[range->alloc]);
      }
    }
  }
  // Memory of values goes back after every stream that uses them.
  void JudgeValues() {
    std::set<int32_t> values;  // allocations
    for (const Event& event : trace_.events) {
      if (event.kind != EventKind::kCompute || !facts_.Overlaps(event.instance)) continue;
      const spf_uses& uses = a_.Facts(event.instance).Node(event.id, rank_).uses[event.phase];
      if (static_cast<uint32_t>(uses.n) != event.ranges.size()) continue;
      for (int32_t u = 0; u < uses.n; ++u) {
        const bool value = uses.use[u].table == SPF_IN_ACT || uses.use[u].table == SPF_IN_DACT;
        if (value) values.insert(trace_.ranges[event.ranges.begin + size_t(u)].alloc);
      }
    }
    if (!values.empty()) Judge(result_, {"EP-07"});
    for (const auto& [alloc, events] : users_) {
      if (values.count(alloc) == 0) continue;
      std::map<int32_t, int64_t> last;  // by stream
      for (const int64_t index : events) {
        const Event& event = At(trace_.events, index);
        if (event.kind != EventKind::kFree) last[event.stream] = index;
        for (const auto& [stream, use] : last) {
          if (event.kind != EventKind::kFree || stream == event.stream) continue;
          JudgeOrder("EP-07", use, index,
                     "memory of a value is given back while a stream still uses it");
        }
      }
    }
  }
  bool Writes(const Event& event, const Range& range) const {
    if (event.kind == EventKind::kFree) return true;
    for (uint32_t r = event.ranges.begin; r < event.ranges.end; ++r) {
      const Range& other = trace_.ranges[r];
      if (Meet(other, range) && (other.access & kWrite) != 0) return true;
    }
    return false;
  }
  // What clears the gradient's memory, the first and the last compute that add to it; after the
  // reduction the first that writes or frees its memory.
  void JudgeAround(int64_t reduction, const Range& range, const std::vector<int64_t>& users) {
    int64_t clears = -1, first = -1, before = -1, after = -1;
    for (const int64_t index : users) {
      const Event& event = At(trace_.events, index);
      if (index == reduction || !Writes(event, range)) continue;
      if (index < reduction && event.kind == EventKind::kCompute) before = index;
      if (first < 0 && before >= 0) first = before;
      if (first < 0 && event.kind == EventKind::kLaunch) clears = index;
      if (index > reduction && after < 0) after = index;
    }
    if (clears >= 0 && first >= 0) {
      JudgeOrder("EP-24", clears, first,
                 "a gradient is added to memory that may not be cleared yet");
    }
    if (before >= 0)
      JudgeOrder("EP-19", before, reduction,
                 "a reduction can start before the gradient is complete");
    if (after < 0) return;
    JudgeOrder("EP-24", reduction, after,
               "memory of a gradient is reused or freed while it is reduced");
  }

  const Ordering& ordering_;
  std::map<int32_t, std::vector<int64_t>> users_;  // by allocation: events that touch or free it
};

}  // namespace

CheckResult CheckBuffers(const Facts& facts, const Ordering& ordering) {
  CheckResult result;
  if (!ordering.usable()) {
    CannotJudge(result, {"EP-07", "EP-10", "EP-12", "EP-19", "EP-24"}, ordering.why());
    return result;
  }
  if (!facts.a().has_flow()) CannotJudge(result, {"EP-10", "EP-12"}, facts.a().flow_why());
  FindingSink sink(result);
  for (int32_t rank = 0; rank < facts.a().ranks(); ++rank)
    Buffers(facts, rank, ordering, result, sink).Run();
  return result;
}

}  // namespace shardproof::schedule
