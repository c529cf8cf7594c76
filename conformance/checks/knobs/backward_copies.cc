// Which copy of a unit's parameters forward and backward read with backward_param_copies, and of
// which weights the two are.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "conformance/checks/base/byte_map.h"
#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/event_ranges.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/knobs/knobs.h"
#include "conformance/checks/knobs/staged_bytes.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

// Forward that is run again in backward is forward.
enum Side { kForward, kBackward, kSides };
const char* Name(int side) { return side == kForward ? "forward" : "backward"; }

// What bytes hold follows who wrote them: labels play no part.
class BackwardCopies : RankCheck {
 public:
  BackwardCopies(const Analysis& a, int32_t rank, int32_t instance, CheckResult& result,
                 FindingSink& sink)
      : RankCheck(a, rank, result, sink), instance_(instance), facts_(a.Facts(size_t(instance))) {
    for (const Carried& carried : CarriedBy(a, rank)) {
      const bool own = At(trace_.events, carried.event).instance == instance;
      if (own && carried.gather && !IsOuter(a, rank, carried))
        gathers_.emplace(carried.event, &carried);
    }
  }

  void Run() {
    for (index_ = 0; index_ < Length(trace_.events); ++index_) FollowReads(EventHere());
    FindSides();
    for (index_ = 0; index_ < Length(trace_.events); ++index_) FollowShards(EventHere());
  }

 private:
  const Event& EventHere() const { return At(trace_.events, index_); }
  const Carried* GatherHere() const {
    const auto gather = gathers_.find(index_);
    return gather == gathers_.end() ? nullptr : gather->second;
  }
  bool OfUnit(const Chunk& chunk) const { return facts_.ByKey(chunk.content.param).unit >= 0; }

  // Bytes that are given back or overwritten hold something else.
  template <class T>
  void Forget(const Event& event, ByteMap<T>& map) const {
    if (event.kind == EventKind::kFree || event.kind == EventKind::kRelease)
      map.EraseBlock(event.alloc);
    for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
      const Range& range = At(trace_.ranges, i);
      if ((range.access & kWrite) != 0)
        map.Erase(range.alloc, range.offset, range.offset + range.length);
    }
  }

  // First: which gather brought what a node reads.
  void FollowReads(const Event& event) {
    if (event.kind == EventKind::kCompute) return Read(event);
    if (event.kind == EventKind::kCopy) {
      for (const auto& [from, to] : CopiedRuns(trace_, event)) Copy(from, to);
      return;
    }
    if (event.kind == EventKind::kLaunch && event.id == SPF_K_AXPBY && event.ranges.size() == 2)
      return Copy(At(trace_.ranges, event.ranges.begin), At(trace_.ranges, event.ranges.begin + 1));
    Forget(event, held_);
    const Carried* gather = GatherHere();
    if (gather == nullptr) return;
    const Range* recv = RecvRange(trace_, event);
    first_brought_[index_] = Length(brought_);
    for (const Chunk& chunk : gather->params) {
      if (!OfUnit(chunk)) continue;
      const int64_t begin = recv->offset + chunk.offset;
      held_.Put(recv->alloc, begin, begin + chunk.length, Length(brought_));
      brought_.push_back(index_);
    }
  }

  void Copy(const Range& from, const Range& to) {
    const auto copied = held_.Get(from.alloc, from.offset, from.offset + from.length);
    held_.Erase(to.alloc, to.offset, to.offset + to.length);
    if (from.length == 0 || (to.access & kRead) != 0) return;
    const auto scaled = [&](int64_t byte) {
      return to.offset + (byte - from.offset) * to.length / from.length;
    };
    for (const auto& piece : copied)
      held_.Put(to.alloc, scaled(piece.begin), scaled(piece.end), piece.value);
  }

  void Read(const Event& event) {
    if (event.instance != instance_ || event.id < 0 || event.id >= facts_.node_count(rank_)) return;
    const spf_uses& uses = facts_.Node(event.id, rank_).uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return;
    const Side side = event.phase == SPF_FWD ? kForward : kBackward;
    for (int32_t i = 0; i < uses.n; ++i) {
      if (uses.use[i].table != SPF_IN_PARAM) continue;
      const Range& range = trace_.ranges[event.ranges.begin + size_t(i)];
      const ParamFacts& param = facts_.Param(rank_, uses.use[i].id);
      const auto pieces = held_.Get(range.alloc, range.offset, range.offset + range.length);
      for (const auto& piece : pieces) ReadOf(piece.value, side, param.name);
      if (!pieces.empty())
        JudgeWhole(param, side, Gathered(pieces, param), NumelOf(param, size_t(i)));
    }
  }
  // Elements of the parameter, in what the event reads in this range.
  int64_t NumelOf(const ParamFacts& param, size_t range) const {
    const EventFlow& flow = a_.flow().At(rank_, index_);
    return range < flow.before.size() ? Numel(flow.before[range], param) : 0;
  }
  int64_t Numel(const std::vector<Chunk>& chunks, const ParamFacts& param) const {
    int64_t numel = 0;
    for (const Chunk& chunk : Only(chunks, Content::Kind::kParam)) {
      if (chunk.content.param == param.key) numel += chunk.length / chunk.content.width;
    }
    return numel;
  }
  // The most elements of the parameter that one of the gathers behind these bytes brought.
  int64_t Gathered(const std::vector<ByteMap<int64_t>::Piece>& pieces,
                   const ParamFacts& param) const {
    int64_t numel = 0;
    for (const auto& piece : pieces)
      numel = std::max(numel, Numel(gathers_.at(At(brought_, piece.value))->params, param));
    return numel;
  }
  // One copy has all of the parameter, and the other has not. What was gathered and is gone when it
  // is read is FS-02's.
  void JudgeWhole(const ParamFacts& param, Side side, int64_t gathered, int64_t numel) {
    const int32_t call = EventHere().call;
    if (numel == param.numel) {
      whole_[{param.key, side}] = call;
      return;
    }
    const auto other = whole_.find({param.key, 1 - side});
    if (gathered == param.numel || other == whole_.end() || other->second != call) return;
    Judge(result_, {"KN-16"});
    Add("KN-16", index_,
        std::string("all of ") + param.name + ", as in " + Name(1 - side) + "'s copy",
        std::to_string(numel) + " elements of it, of " + std::to_string(param.numel),
        std::string("the copy for ") + Name(side) +
            " does not have all of the weights: write both after each update, on every rank that "
            "has a part");
  }

  void ReadOf(int64_t brought, Side side, const std::string& param) {
    const auto [reader, added] = readers_.emplace(brought, side);
    if (reader->second == side || both_[brought]) return;
    both_[brought] = true;
    Judge(result_, {"KN-15"});
    const int64_t gather = At(brought_, brought);
    const std::string other = Name(1 - side);
    Add("KN-15", index_, std::string("the copy of ") + param + " for " + Name(side),
        "what the gather at event " + std::to_string(gather) + " brought, which " + other +
            " reads as well",
        "backward_param_copies = 1, but " + std::string(Name(side)) + " reads " + other +
            "'s copy: gather each one for those that read it");
  }

  void FindSides() {
    for (const auto& [brought, side] : readers_) {
      std::set<Side>& sides = sides_of_[At(brought_, brought)];
      sides.insert(side);
      if (both_[brought]) misread_.insert(At(brought_, brought));
    }
  }
  // Of a gather whose bytes all have readers of one side.
  std::optional<Side> SideOf(int64_t gather) const {
    const auto sides = sides_of_.find(gather);
    if (sides == sides_of_.end() || sides->second.size() != 1 || misread_.count(gather) != 0)
      return std::nullopt;
    return *sides->second.begin();
  }
  bool BringsBoth(int64_t gather) const {
    const auto sides = sides_of_.find(gather);
    return sides != sides_of_.end() && sides->second.size() == kSides &&
           misread_.count(gather) == 0;
  }

  // Then: which bytes gathers of the two copies send, and whose weights they bring.
  void FollowShards(const Event& event) {
    if (event.call != call_) {  // evaluation may send either copy
      versions_ = {};
      staged_ = {};
      sent_ = {};
      has_gathered_ = false;
    }
    call_ = event.call;
    if (event.kind == EventKind::kCopy) {
      for (const auto& [from, to] : CopiedRuns(trace_, event)) Stage(from, to);
      return;
    }
    Forget(event, sent_);
    Forget(event, staged_.map());
    const Carried* gather = GatherHere();
    if (gather == nullptr) return;
    has_gathered_ = true;
    Compare(*gather);
    const Range* send = SendRange(trace_, event);
    if (send == nullptr) return;
    const std::optional<Side> side = SideOf(index_);
    ByteMap<int64_t> both;
    const auto& before = a_.flow().At(rank_, index_).before;
    for (const Chunk& chunk :
         Only(before[RangeIndex(trace_, event, send)], Content::Kind::kParam)) {
      if (!OfUnit(chunk)) continue;
      if (side) Send(send->alloc, send->offset + chunk.offset, chunk, *side);
      if (BringsBoth(index_)) SendBoth(send->alloc, send->offset + chunk.offset, chunk, both);
    }
  }

  // Bytes that are copied in a step, to be sent from there, are still those of where they come
  // from. Copies of other steps are kept ones: so an update writes both.
  void Stage(const Range& from, const Range& to) {
    sent_.Erase(to.alloc, to.offset, to.offset + to.length);
    if ((to.access & kRead) == 0) staged_.Copy(from, to, has_gathered_);
  }

  // One gather brings both copies.
  void SendBoth(int32_t alloc, int64_t begin, const Chunk& chunk, ByteMap<int64_t>& both) {
    bool clear = true;
    for (const StagedBytes::Piece& piece : staged_.RootsOf(alloc, begin, begin + chunk.length)) {
      const int64_t from = piece.at + piece.root.shift, to = from + piece.length;
      if (!both.Get(piece.root.alloc, from, to).empty()) {
        clear = false;
        if (piece.root.between) return SentForBoth(chunk, kBackward, index_);
      }
      both.Put(piece.root.alloc, from, to, index_);
    }
    if (clear) Judge(result_, {"KN-15"});
  }

  void Send(int32_t alloc, int64_t begin, const Chunk& chunk, Side side) {
    bool clear = true;
    for (const StagedBytes::Piece& place : staged_.RootsOf(alloc, begin, begin + chunk.length)) {
      const int64_t from = place.at + place.root.shift, to = from + place.length;
      for (const auto& piece : sent_.Get(place.root.alloc, from, to)) {
        const std::optional<Side> other = SideOf(piece.value);
        if (!other || *other == side) continue;
        clear = false;
        if (place.root.between) return SentForBoth(chunk, side, piece.value);
      }
      sent_.Put(place.root.alloc, from, to, index_);
    }
    if (clear && side == kBackward) Judge(result_, {"KN-15"});
  }
  void SentForBoth(const Chunk& chunk, Side side, int64_t other) {
    Judge(result_, {"KN-15"});
    Add("KN-15", index_,
        std::string("a shard of ") + facts_.ByKey(chunk.content.param).name + " for " + Name(side),
        "the bytes that the gather at event " + std::to_string(other) + " sent for " +
            Name(1 - side),
        "backward_param_copies = 1, but gathers for forward and for backward send the same "
        "bytes: there is one copy");
  }

  void Compare(const Carried& gather) {
    int64_t brought = first_brought_.at(index_);
    for (const Chunk& chunk : gather.params) {
      if (!OfUnit(chunk)) continue;
      const auto reader = readers_.find(brought++);
      if (reader == readers_.end() || both_[reader->first]) continue;
      const Side side = reader->second;
      const Content& content = chunk.content;
      const int64_t end = content.element + chunk.length / content.width;
      for (const auto& piece : At(versions_, 1 - side).Get(content.param, content.element, end)) {
        Judge(result_, {"KN-16"});
        if (piece.value != content.tag) Differ(content, side, piece.value);
      }
      At(versions_, int{side}).Put(content.param, content.element, end, content.tag);
    }
  }
  void Differ(const Content& content, Side side, int32_t other) {
    const bool older = content.tag < other;
    const int old_side = older ? side : 1 - side;
    const auto call = [&](int32_t tag) { return a_.CallName(rank_, instance_, tag); };
    Add("KN-16", index_,
        facts_.ByKey(content.param).name + " of " + call(std::max(content.tag, other)) +
            ", as in " + Name(1 - old_side) + "'s copy",
        "of " + call(std::min(content.tag, other)) + " in " + Name(old_side) + "'s copy",
        std::string("the copy for ") + Name(old_side) +
            " is of older weights than the other: write both after each update");
  }

  const int32_t instance_;
  const InstanceFacts& facts_;
  std::unordered_map<int64_t, const Carried*> gathers_;  // by event
  int64_t index_ = 0;
  std::vector<int64_t> brought_;               // by chunk that came: the event of its gather
  ByteMap<int64_t> held_;                      // indices of brought_
  std::unordered_map<int64_t, Side> readers_;  // by index of brought_: the first
  std::unordered_map<int64_t, bool> both_;     // both sides have read it
  std::unordered_map<int64_t, std::set<Side>> sides_of_;  // of gathers, by event
  std::set<int64_t> misread_;                             // gathers of which both read the same
  std::unordered_map<int64_t, int64_t> first_brought_;    // of a gather, by event
  // In call_: where copied bytes come from; by where they come from, the gather that sent them.
  StagedBytes staged_;
  ByteMap<int64_t> sent_;
  bool has_gathered_ = false;
  std::map<std::pair<int32_t, int>, int32_t> whole_;  // key, side: last call that read all of it
  int32_t call_ = -1;
  std::array<ByteMap<int32_t>, kSides> versions_;  // in call_: elements of parameters, by key
};

bool Asks(const InstanceSpec& spec) { return spec.backward_copies && ShardsParams(spec); }

// Gathers go over several ranks and bring what backward reads.
bool Gathers(const InstanceFacts& facts) {
  const InstanceSpec& spec = facts.spec();
  if (!Asks(spec) || spec.script.find('t') == std::string::npos) return false;
  if (DpCpSize(spec) / std::max(1, spec.outer) < 2) return false;
  for (int32_t key = 0; key < facts.n_keys(); ++key) {
    const ParamFacts& param = facts.ByKey(key);
    if (param.unit >= 0 && param.matrix && !param.expert) return true;
  }
  return false;
}

}  // namespace

std::set<std::string> ShownWithBackwardCopies(const InstanceFacts& facts) {
  return Gathers(facts) ? std::set<std::string>{"KN-15", "KN-16"} : std::set<std::string>{};
}

CheckResult CheckBackwardCopies(const Analysis& a) {
  CheckResult result;
  FindingSink sink(result);
  for (size_t i = 0; i < a.n_instances(); ++i) {
    if (!Asks(a.Facts(i).spec())) continue;
    if (!a.has_flow()) {
      CannotJudge(result, {"KN-15", "KN-16"}, a.flow_why());
      return result;
    }
    for (int32_t rank = 0; rank < a.ranks(); ++rank) {
      if (a.Facts(i).InGrid(rank))
        BackwardCopies(a, rank, static_cast<int32_t>(i), result, sink).Run();
    }
  }
  return result;
}

}  // namespace shardproof
