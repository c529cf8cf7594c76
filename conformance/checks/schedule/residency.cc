#include "conformance/checks/schedule/residency.h"

#include <algorithm>
#include <unordered_map>

#include "conformance/checks/base/byte_map.h"
#include "conformance/checks/base/carried.h"

namespace shardproof::schedule {

namespace {

class Walk {
 public:
  Walk(const Analysis& a, int32_t rank) : a_(a), rank_(rank), trace_(a.trace(rank)) {
    for (const Carried& carried : CarriedBy(a, rank)) {
      if (carried.gather) gathers_.emplace(carried.event, &carried);
    }
  }

  std::vector<Resident> Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i)
      Visit(static_cast<int64_t>(i), trace_.events[i]);
    return std::move(out_);
  }

 private:
  void Visit(int64_t index, const Event& event) {
    if (GivesBack(event.kind)) {
      Close(held_.EraseBlock(event.alloc), index);
    } else if (event.kind == EventKind::kCompute) {
      for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i)
        Read(index, trace_.ranges[i]);
    } else if (event.kind == EventKind::kCollective || event.kind == EventKind::kLaunch ||
               event.kind == EventKind::kCopy || event.kind == EventKind::kInit) {
      for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
        if ((trace_.ranges[i].access & kWrite) != 0) Erase(index, trace_.ranges[i]);
      }
      if (event.kind == EventKind::kCopy) Copy(event);
      const auto gather = gathers_.find(index);
      if (gather != gathers_.end()) Gather(index, event, *gather->second);
    }
  }

  void Erase(int64_t index, const Range& range) {
    Close(held_.Erase(range.alloc, range.offset, range.offset + range.length), index);
  }
  // Intervals that lost bytes.
  void Close(const std::set<size_t>& owners, int64_t index) {
    for (const size_t owner : owners) {
      if (held_.Bytes(owner) == 0 && out_[owner].release < 0) out_[owner].release = index;
    }
  }

  void Gather(int64_t index, const Event& event, const Carried& carried) {
    const Range* recv = RecvRange(trace_, event);
    const InstanceFacts& facts = a_.Facts(event.instance);
    const auto* outer =
        facts.OuterList(facts.ByKey(carried.params.front().content.param).expert, rank_);
    if (outer != nullptr && *outer == carried.group->world_ranks) return;  // fills up the shard
    for (const Chunk& chunk : carried.params) {
      const ParamFacts& param = facts.ByKey(chunk.content.param);
      const int64_t first = chunk.content.element,
                    width = std::max<int64_t>(1, chunk.content.width);
      const Elements elements{param.key, first, first + chunk.length / width};
      const size_t owner = OwnerFor(index, event, param, elements, recv->alloc);
      out_[owner].last_gather = index;
      out_[owner].elements.push_back(elements);
      const int64_t begin = recv->offset + chunk.offset;
      held_.Put(recv->alloc, begin, begin + chunk.length, owner);
    }
  }
  // The group's interval that is open and unread and does not hold these elements yet, or a new
  // one.
  size_t OwnerFor(int64_t index, const Event& event, const ParamFacts& param,
                  const Elements& elements, int32_t alloc) {
    for (size_t i = out_.size(); i-- > 0;) {
      const Resident& one = out_[i];
      if (one.instance != event.instance || one.unit != param.unit || one.expert != param.expert)
        continue;
      const bool open = one.release < 0 && one.reads.empty() && one.call == event.call;
      if (open && (one.last_gather == index || !one.HasSomeOf(elements))) return i;
      break;
    }
    Resident resident;
    resident.instance = event.instance;
    resident.call = event.call;
    resident.unit = param.unit;
    resident.expert = param.expert;
    resident.gather = index;
    resident.alloc = alloc;
    out_.push_back(resident);
    return out_.size() - 1;
  }

  void Read(int64_t index, const Range& range) {
    if ((range.access & kRead) == 0) return;
    for (const auto& piece : held_.Get(range.alloc, range.offset, range.offset + range.length)) {
      auto& reads = out_[piece.value].reads;
      if (reads.empty() || reads.back() != index) reads.push_back(index);
    }
  }
  // A copy of gathered bytes is as gathered as they are.
  void Copy(const Event& event) {
    for (const auto& [from, to] : CopiedRuns(trace_, event)) Copy(from, to);
  }
  void Copy(const Range& from, const Range& to) {
    const int64_t shift = to.offset - from.offset;
    for (const auto& piece : held_.Get(from.alloc, from.offset, from.offset + from.length)) {
      held_.Put(to.alloc, piece.begin + shift, piece.end + shift, piece.value);
    }
  }

  const Analysis& a_;
  const int32_t rank_;
  const Trace& trace_;
  std::unordered_map<int64_t, const Carried*> gathers_;  // by event
  ByteMap<size_t> held_;                                 // by interval
  std::vector<Resident> out_;
};

}  // namespace

bool Resident::HasSomeOf(const Elements& other) const {
  return std::any_of(elements.begin(), elements.end(), [&](const Elements& one) {
    return one.key == other.key && one.begin < other.end && other.begin < one.end;
  });
}

std::vector<Resident> FindResidents(const Analysis& a, int32_t rank) { return Walk(a, rank).Run(); }

std::string Text(const Analysis& a, int32_t rank, const Resident& resident) {
  if (resident.unit < 0) return "the parameters outside units";
  return (resident.expert ? "experts of " : "dense parameters of ") +
         a.Facts(size_t(resident.instance)).ModuleName(resident.unit, rank);
}

}  // namespace shardproof::schedule
