// What is computed in summands over tp or cp is summed over it, once, before it is read; parts of
// the sequence are gathered.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "conformance/checks/base/event_ranges.h"
#include "conformance/checks/base/range_map.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/tensor_parallel/crossings.h"
#include "conformance/checks/tensor_parallel/meetings.h"
#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

// A value of a microbatch, or its gradient (table), as a node has written it: how often it has been
// summed or gathered since.
struct Holds {
  int32_t instance = 0, table = 0, value = -1, call = -1, microbatch = -1, sums = 0;
  auto operator<=>(const Holds&) const = default;

  bool SameName(const Holds& other) const {
    return std::tie(instance, table, value) == std::tie(other.instance, other.table, other.value);
  }
  bool SameValue(const Holds& other) const {
    return SameName(other) && call == other.call && microbatch == other.microbatch;
  }
};

// One rank: follows summands through memory in issue order.
class Walk : RankCheck {
 public:
  Walk(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink,
       std::vector<Crossing>& over_tp)
      : RankCheck(a, rank, result, sink), over_tp_(over_tp) {
    for (size_t i = 0; i < a.n_instances(); ++i) FindMeetings(a.Facts(i));
  }

  void Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i)
      Visit(static_cast<int64_t>(i), trace_.events[i]);
  }

 private:
  using Piece = RangeMap<Holds>::Piece;

  // What the tables of the model say to sum and to gather.
  void FindMeetings(const InstanceFacts& facts) {
    Meetings meetings = MeetingsOf(facts, rank_);
    sent_.push_back(std::move(meetings.sent));
    read_.push_back(std::move(meetings.read));
    for (const Axis axis : {Axis::kTp, Axis::kCp}) {
      const std::vector<int32_t>* list = facts.List(NameOf(axis), rank_);
      lists_[axis].push_back(list == nullptr ? std::vector<int32_t>() : *list);
    }
  }

  static const Met* Find(const std::vector<Values>& values, const Holds& holds) {
    const auto known = At(values, holds.instance).find({holds.table, holds.value});
    return known == At(values, holds.instance).end() ? nullptr : &known->second;
  }
  static const char* IdOf(const Holds& holds, const Met& met) {
    return MeetingId(met, holds.table == SPF_IN_DACT);
  }

  void Visit(int64_t index, const Event& event) {
    Follow(index, event);
    if (event.kind == EventKind::kAlloc) {
      fresh_.Put(event.alloc, 0, event.count, true);
    } else if (GivesBack(event.kind)) {
      fresh_.EraseBlock(event.alloc);
    } else {
      fresh_.Overwrite(trace_, event);
    }
  }

  void Follow(int64_t index, const Event& event) {
    switch (event.kind) {
      case EventKind::kCollective:
        return Communicate(index, event);
      case EventKind::kCompute:
        return Compute(index, event);
      case EventKind::kLaunch:
        return Launch(event);
      case EventKind::kCopy:
        for (const auto& [from, to] : CopiedRuns(trace_, event)) Move(from, to);
        break;
      case EventKind::kRelease:
      case EventKind::kFree:
        bytes_.EraseBlock(event.alloc);
        break;
      default:
        Overwrite(event);
    }
  }

  void Overwrite(const Event& event) { bytes_.Overwrite(trace_, event); }
  // Bytes of one length.
  void Move(const Range& from, const Range& to) { PutPieces(bytes_.Get(from), from.offset, to); }
  void PutPieces(const std::vector<Piece>& pieces, int64_t from, const Range& to) {
    bytes_.Erase(to);
    for (const Piece& piece : pieces)
      bytes_.Put(to.alloc, to.offset + piece.begin - from, to.offset + piece.end - from,
                 piece.value);
  }

  void Compute(int64_t index, const Event& event) {
    const InstanceFacts& facts = a_.Facts(event.instance);
    if (event.id < 0 || event.id >= facts.node_count(rank_)) return Overwrite(event);
    const spf_uses& uses = facts.Node(event.id, rank_).uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return Overwrite(event);
    for (int32_t i = 0; i < uses.n; ++i) {
      const spf_use& use = uses.use[i];
      if (use.access != SPF_READ) continue;
      JudgeRead(index, At(trace_.ranges, event.ranges.begin + size_t(i)),
                {event.instance, use.table, use.id, event.call, event.microbatch, 0});
    }
    Overwrite(event);
    for (int32_t i = 0; i < uses.n; ++i) {
      const spf_use& use = uses.use[i];
      const bool value = use.table == SPF_IN_ACT || use.table == SPF_IN_DACT;
      const Range& range = At(trace_.ranges, event.ranges.begin + size_t(i));
      if (value && (use.access & SPF_WRITE) != 0)
        bytes_.Put(range, {event.instance, use.table, use.id, event.call, event.microbatch, 0});
    }
  }

  // How many bytes of a range hold a value, how often it met over tp, and how many hold what
  // another microbatch or call has left there of it.
  struct Held {
    int64_t known = 0, stale = 0;
    int32_t least = INT32_MAX, most = 0;
  };
  Held HeldIn(const Range& range, const Holds& value) const {
    Held held;
    for (const Piece& piece : bytes_.Get(range)) {
      if (!piece.value.SameName(value)) continue;
      const bool same = piece.value.SameValue(value);
      (same ? held.known : held.stale) += piece.end - piece.begin;
      if (!same) continue;
      held.least = std::min(held.least, piece.value.sums);
      held.most = std::max(held.most, piece.value.sums);
    }
    return held;
  }

  // Bytes that no node has written as this value came by a way that is not followed.
  void JudgeRead(int64_t index, const Range& range, const Holds& read) {
    const Met* met = Find(read_, read);
    if (met == nullptr || range.length == 0) return;
    Holds sent = read;
    sent.value = met->value;
    const Held held = HeldIn(range, sent);
    const bool whole = held.known == range.length;
    if (!whole && held.stale == 0 && held.known + Fresh(range) < range.length) {
      CannotJudge(result_, {IdOf(read, *met), GroupId(*met)},
                  met->node + " is read from bytes that are not followed to what was computed");
      return;
    }
    Judge(result_, {IdOf(read, *met), GroupId(*met)});
    if (!whole || held.least != 1 || held.most != 1) TellRead(index, read, *met, held, whole);
  }

  void TellRead(int64_t index, const Holds& read, const Met& met, const Held& held, bool whole) {
    const bool value = read.table == SPF_IN_ACT, missing = !whole || held.least == 0;
    const char* own = held.stale > 0 ? "what another microbatch or step has left there"
                      : !whole       ? "memory that nothing has written"
                      : met.gathered ? "the part of this rank"
                                     : "the summand of this rank";
    const std::string ranks = ListText(RanksOf(read, met)), axis = NameOf(met.axis);
    if (met.gathered && met.of == Meets::kLoss) {
      Add(IdOf(read, met), index, met.node + ": the maxima of the ranks " + ranks, own,
          "the loss is computed without the largest logits of the other ranges of the vocabulary");
      return;
    }
    if (met.gathered) {
      Add(IdOf(read, met), index, met.node + ": the parts of the ranks " + ranks, own,
          std::string(value ? "a value" : "a gradient") +
              " of parts of the sequence is read without those of the other ranks of " + axis);
      return;
    }
    const char* what = met.of == Meets::kRows ? "what each rank of tp has looked up in its range"
                       : met.of == Meets::kLoss
                           ? "the sum of exponentials, with the label's logit, of a range"
                       : met.axis == Axis::kCp ? "the gradient of keys and values that ranks share"
                       : value                 ? "the output of a layer that is split over tp"
                               : "the gradient of the input of a layer that is split over tp";
    Add(IdOf(read, met), index, met.node + ": one sum over the ranks " + ranks,
        missing ? own : std::to_string(held.most) + " sums",
        std::string(what) + " is read " +
            (missing ? "before it is summed over " + axis
                     : "after it was summed over " + axis + " again"));
  }
  int64_t Fresh(const Range& range) const {
    int64_t bytes = 0;
    for (const auto& piece : fresh_.Get(range)) bytes += piece.end - piece.begin;
    return bytes;
  }
  const std::vector<int32_t>& RanksOf(const Holds& holds, const Met& met) const {
    return At(lists_.at(met.axis), holds.instance);
  }

  // Of one value, all of the range.
  const Holds* Sole(const std::vector<Piece>& pieces, const Range& range) const {
    int64_t bytes = 0;
    for (const Piece& piece : pieces) {
      bytes += piece.end - piece.begin;
      if (piece.value != pieces.front().value) return nullptr;
    }
    return bytes == range.length && bytes > 0 ? &pieces.front().value : nullptr;
  }

  void Communicate(int64_t index, const Event& event) {
    const Range* send = SendRange(trace_, event);
    const Range* recv = RecvRange(trace_, event);
    if (BringsOtherShards(a_, rank_, index)) NoteCrossing(index, send);
    if (send == nullptr || recv == nullptr || event.group < 0) return Overwrite(event);
    const std::vector<int32_t>& ranks = At(trace_.groups, event.group).world_ranks;
    std::vector<Piece> pieces = bytes_.Get(*send);
    const bool sums = event.collective == SPF_ALL_REDUCE || event.collective == SPF_REDUCE_SCATTER;
    const bool gathers = event.collective == SPF_ALL_GATHER;
    if ((sums || gathers) && ranks.size() > 1) {
      for (Piece& piece : pieces) JudgeMeeting(index, event, ranks, piece.value);
    }
    if (event.collective == SPF_ALL_REDUCE || ranks.size() == 1)
      return PutPieces(pieces, send->offset, *recv);
    const Holds* sole = Sole(pieces, *send);
    // The parts of a sum that its ranks share out come together again.
    const bool parts = event.collective == SPF_REDUCE_SCATTER ||
                       (event.collective == SPF_ALL_GATHER && sole != nullptr && sole->sums > 0);
    if (!parts || sole == nullptr) return Overwrite(event);
    const Holds holds = *sole;
    bytes_.Put(*recv, holds);
  }

  void NoteCrossing(int64_t index, const Range* send) {
    int64_t known = 0;
    if (send != nullptr) {
      for (const Piece& piece : bytes_.Get(*send)) known += piece.end - piece.begin;
    }
    if (known == 0 || known < send->length) over_tp_.push_back({index, known == 0});
  }

  // A sum of summands, or a gather of parts.
  void JudgeMeeting(int64_t index, const Event& event, const std::vector<int32_t>& ranks,
                    Holds& holds) {
    const Met* met = Find(sent_, holds);
    if (met == nullptr || met->gathered != (event.collective == SPF_ALL_GATHER)) return;
    const bool first = told_.insert({index, holds}).second;
    holds.sums = met->gathered ? 1 : holds.sums + 1;  // gathered again: the same parts
    if (!first) return;
    Judge(result_, {GroupId(*met)});
    std::vector<int32_t> sorted = ranks, wanted = RanksOf(holds, *met);
    std::sort(sorted.begin(), sorted.end());
    std::sort(wanted.begin(), wanted.end());
    const std::string axis = NameOf(met->axis);
    if (sorted != wanted) {
      Add(GroupId(*met), index, met->node + ": over the ranks " + ListText(wanted),
          "over " + ListText(ranks),
          "the group is not the one of the ranks that hold the other " +
              std::string(met->axis == Axis::kTp ? "shards" : "parts of the sequence"));
    } else if (!met->gathered && event.reduction != SPF_SUM) {
      Add(IdOf(holds, *met), index, met->node + ": the sum over " + axis,
          "no sum (average or another)",
          "what the ranks of " + axis + " have computed are summands, not values to be averaged");
    }
  }

  void Launch(const Event& event) {
    const Range* ranges = trace_.ranges.data() + event.ranges.begin;
    const bool moves = event.id == SPF_K_AXPBY && event.ranges.size() == 2 &&
                       (ranges[1].access & kRead) == 0 && ranges[0].length == ranges[1].length;
    moves ? Move(ranges[0], ranges[1]) : Overwrite(event);
  }

  RangeMap<Holds> bytes_;
  RangeMap<bool> fresh_;  // what nothing has written since it was allocated
  // By instance. sent_: what goes into a collective, read_: what nodes read behind it.
  std::vector<Values> sent_, read_;
  std::map<Axis, std::vector<std::vector<int32_t>>> lists_;  // by axis and instance: ranks
  std::set<std::pair<int64_t, Holds>> told_;
  std::vector<Crossing>& over_tp_;
};

}  // namespace

CheckResult CheckTpSums(const Analysis& a, OverTp& over_tp) {
  CheckResult result;
  for (const Trace& trace : a.traces()) {
    const Provides& provides = trace.provides;
    if (provides.memory && provides.work && provides.collectives) continue;
    const std::string why =
        "rank " + std::to_string(trace.rank) + "'s trace lacks memory ranges, work or collectives";
    for (size_t i = 0; i < a.n_instances(); ++i) {
      const std::set<std::string> ids = ShownBySums(a.Facts(i));
      for (const std::string& id : ids) CannotJudge(result, {id.c_str()}, why);
    }
    return result;
  }
  FindingSink sink(result);
  over_tp.resize(size_t(a.ranks()));
  for (int32_t rank = 0; rank < a.ranks(); ++rank)
    Walk(a, rank, result, sink, At(over_tp, rank)).Run();
  return result;
}

}  // namespace shardproof
