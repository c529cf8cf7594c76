#include "conformance/checks/tensor_parallel/value_walk.h"

#include <algorithm>
#include <optional>
#include <string>

#include "conformance/checks/base/event_ranges.h"
#include "conformance/checks/tensor_parallel/crossings.h"
#include "conformance/checks/tensor_parallel/reads.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

const Met* Find(const std::vector<Values>& values, const Holds& holds) {
  const auto known = At(values, holds.instance).find({holds.table, holds.value});
  return known == At(values, holds.instance).end() ? nullptr : &known->second;
}

const char* IdOf(const Holds& holds, const Met& met) {
  return MeetingId(met, holds.table == SPF_IN_DACT);
}

bool IsGather(const Event& event) {
  return event.collective == SPF_ALL_GATHER || event.collective == SPF_ALL_GATHER_V;
}

bool IsSum(const Event& event) {
  return event.collective == SPF_ALL_REDUCE || event.collective == SPF_REDUCE_SCATTER;
}

int64_t BytesOf(const std::vector<HeldPiece>& pieces) {
  int64_t bytes = 0;
  for (const HeldPiece& piece : pieces) bytes += piece.end - piece.begin;
  return bytes;
}

// Of one value, all of the bytes.
const Holds* Sole(const std::vector<HeldPiece>& pieces, int64_t length) {
  const bool one = std::all_of(pieces.begin(), pieces.end(), [&](const HeldPiece& piece) {
    return piece.value == pieces.front().value;
  });
  return one && BytesOf(pieces) == length && length > 0 ? &pieces.front().value : nullptr;
}

}  // namespace

ValueWalk::ValueWalk(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink,
                     std::vector<Crossing>& over_tp, ValueWalks& walks)
    : RankCheck(a, rank, result, sink),
      walks_(walks),
      memory_(trace_, walks.ranks()),
      over_tp_(over_tp) {
  for (size_t i = 0; i < a.n_instances(); ++i) {
    Meetings meetings = MeetingsOf(a.Facts(i), rank);
    sent_.push_back(std::move(meetings.sent));
    read_.push_back(std::move(meetings.read));
    for (const Axis axis : {Axis::kTp, Axis::kCp}) {
      const std::vector<int32_t>* list = a.Facts(i).List(NameOf(axis), rank);
      lists_[axis].push_back(list == nullptr ? std::vector<int32_t>() : *list);
    }
  }
}

void ValueWalk::Run() {
  while (!busy_ && next_ < trace_.events.size()) Advance();
}

const std::vector<HeldPiece>* ValueWalk::SentAt(int64_t event) {
  while (!busy_ && !sent_at_.contains(event) && static_cast<int64_t>(next_) <= event) Advance();
  const auto at = sent_at_.find(event);
  return at == sent_at_.end() ? nullptr : &at->second;
}

void ValueWalk::Advance() {
  const auto index = static_cast<int64_t>(next_++);
  busy_ = true;
  NoteSent(index);
  const Event& event = At(trace_.events, index);
  Visit(index, event);
  memory_.Age(event);
  busy_ = false;
}

void ValueWalk::NoteSent(int64_t index) {
  const bool group = At(trace_.events, index).kind == EventKind::kGroupBegin;
  for (int64_t i = index; i < Length(trace_.events); ++i) {
    const Event& event = At(trace_.events, i);
    if (event.kind == EventKind::kGroupEnd) return;
    const Range* send = SendRange(trace_, event);
    if (send != nullptr && walks_.messages().Sends(rank_, i))
      sent_at_.try_emplace(i, memory_.Get(*send));
    if (!group) return;
  }
}

void ValueWalk::Visit(int64_t index, const Event& event) {
  if (event.kind == EventKind::kCollective) return Communicate(index, event);
  if (event.kind == EventKind::kCompute) return Compute(index, event);
  memory_.Follow(event);
}

Holds ValueWalk::Own(const Event& event, const spf_use& use) const {
  return {event.instance,          use.table, use.id, event.call, event.microbatch, 0,
          walks_.ranks().Of(rank_)};
}

void ValueWalk::Compute(int64_t index, const Event& event) {
  const InstanceFacts& facts = a_.Facts(event.instance);
  if (event.id < 0 || event.id >= facts.node_count(rank_)) return memory_.Overwrite(event);
  const spf_uses& uses = facts.Node(event.id, rank_).uses[event.phase];
  if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return memory_.Overwrite(event);
  for (int32_t i = 0; i < uses.n; ++i) {
    const spf_use& use = uses.use[i];
    if (use.access != SPF_READ) continue;
    JudgeRead(index, At(trace_.ranges, event.ranges.begin + size_t(i)), Own(event, use));
  }
  memory_.Overwrite(event);
  for (int32_t i = 0; i < uses.n; ++i) {
    const spf_use& use = uses.use[i];
    const bool value = use.table == SPF_IN_ACT || use.table == SPF_IN_DACT;
    const Range& range = At(trace_.ranges, event.ranges.begin + size_t(i));
    if (value && (use.access & SPF_WRITE) != 0) memory_.Put(range, Own(event, use));
  }
}

const std::vector<int32_t>& ValueWalk::RanksOf(const Holds& holds, const Met& met) const {
  return At(lists_.at(met.axis), holds.instance);
}

// Bytes that no node has written as this value came by a way that is not followed.
void ValueWalk::JudgeRead(int64_t index, const Range& range, const Holds& read) {
  const Met* met = Find(read_, read);
  if (met == nullptr || range.length == 0) return;
  Holds sent = read;
  sent.value = met->value;
  const HeldBytes held = HeldIn(memory_.Get(range), sent);
  const bool whole = held.known == range.length;
  if (!whole && held.stale == 0 && held.known + memory_.Fresh(range) < range.length) {
    CannotJudge(result_, {IdOf(read, *met), GroupId(*met)},
                met->node + " is read from bytes that are not followed to what was computed");
    return;
  }
  Judge(result_, {IdOf(read, *met), GroupId(*met)});
  const ReadOfMet reads{*met, read.table == SPF_IN_ACT, whole, rank_, RanksOf(read, *met)};
  const std::optional<Misread> wrong = reads.Judge(held, walks_.ranks());
  if (wrong) Add(wrong->id, index, wrong->expected, wrong->seen, wrong->message);
}

void ValueWalk::Communicate(int64_t index, const Event& event) {
  const Range* send = SendRange(trace_, event);
  const Range* recv = RecvRange(trace_, event);
  const std::vector<HeldPiece>* arrives = Arriving(index);
  if (BringsOtherShards(a_, rank_, index)) NoteCrossing(index, arrives);
  if (arrives != nullptr && recv != nullptr) return memory_.Put(*recv, *arrives);
  if (send == nullptr || recv == nullptr || event.group < 0) return memory_.Overwrite(event);
  const std::vector<int32_t>& ranks = At(trace_.groups, event.group).world_ranks;
  std::vector<HeldPiece> pieces = memory_.Get(*send);
  if ((IsSum(event) || IsGather(event)) && ranks.size() > 1) {
    // What messages brought together before is not followed through collectives.
    std::erase_if(pieces, [&](const HeldPiece& piece) {
      return piece.value.sums == 0 && piece.value.of != walks_.ranks().Of(rank_);
    });
    for (HeldPiece& piece : pieces) JudgeMeeting(index, event, ranks, piece.value);
  }
  if (event.collective == SPF_ALL_REDUCE || event.collective == SPF_BROADCAST || ranks.size() == 1)
    return memory_.Put(*recv, pieces);
  const Holds* sole = Sole(pieces, send->length);
  // The parts of a sum that its ranks share out come together again.
  const bool parts = event.collective == SPF_REDUCE_SCATTER ||
                     (IsGather(event) && sole != nullptr && sole->sums > 0);
  if (!parts || sole == nullptr) return memory_.Overwrite(event);
  memory_.Put(*recv, *sole);
}

const std::vector<HeldPiece>* ValueWalk::Arriving(int64_t index) {
  const Messages::Member* sender = walks_.messages().SenderOf(rank_, index);
  return sender == nullptr ? nullptr : walks_.SentBy(*sender);
}

void ValueWalk::NoteCrossing(int64_t index, const std::vector<HeldPiece>* arrives) {
  const Event& event = At(trace_.events, index);
  const Range* range = arrives == nullptr ? SendRange(trace_, event) : RecvRange(trace_, event);
  const int64_t known = arrives != nullptr ? BytesOf(*arrives)
                        : range != nullptr ? BytesOf(memory_.Get(*range))
                                           : 0;
  if (known == 0 || known < range->length) over_tp_.push_back({index, known == 0});
}

void ValueWalk::JudgeMeeting(int64_t index, const Event& event, const std::vector<int32_t>& ranks,
                             Holds& holds) {
  const Met* met = Find(sent_, holds);
  if (met == nullptr || met->gathered != IsGather(event)) return;
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

ValueWalks::ValueWalks(const Analysis& a, CheckResult& result, FindingSink& sink, OverTp& over_tp)
    : messages_(a) {
  for (int32_t rank = 0; rank < a.ranks(); ++rank)
    walks_.push_back(std::make_unique<ValueWalk>(a, rank, result, sink, At(over_tp, rank), *this));
}

void ValueWalks::Run() {
  for (const auto& walk : walks_) walk->Run();
}

const std::vector<HeldPiece>* ValueWalks::SentBy(const Messages::Member& sender) {
  return At(walks_, sender.rank)->SentAt(sender.event);
}

}  // namespace shardproof
