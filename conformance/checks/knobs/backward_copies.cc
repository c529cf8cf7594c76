// Which copy of a unit's parameters forward and backward read with backward_param_copies, and of
// which weights the two are.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "conformance/checks/base/byte_map.h"
#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/knobs/knobs.h"
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
    const bool copies = event.kind == EventKind::kCopy ||
                        (event.kind == EventKind::kLaunch && event.id == SPF_K_AXPBY);
    if (copies && event.ranges.size() == 2)
      return Copy(At(trace_.ranges, event.ranges.begin), At(trace_.ranges, event.ranges.begin + 1));
    Forget(event, held_);
    const Carried* gather = GatherHere();
    if (gather == nullptr) return;
    const Range* recv = RecvRange(trace_, event);
    for (const Chunk& chunk : gather->params) {
      const int64_t begin = recv->offset + chunk.offset;
      if (OfUnit(chunk)) held_.Put(recv->alloc, begin, begin + chunk.length, index_);
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
      if (!pieces.empty()) JudgeWhole(param, side, range.length, BytesOf(param, size_t(i)));
    }
  }
  // Of the parameter, in what the event reads in this range.
  int64_t BytesOf(const ParamFacts& param, size_t range) const {
    int64_t bytes = 0;
    const EventFlow& flow = a_.flow().At(rank_, index_);
    if (range >= flow.before.size()) return 0;
    for (const Chunk& chunk : Only(flow.before[range], Content::Kind::kParam))
      bytes += chunk.content.param == param.key ? chunk.length : 0;
    return bytes;
  }
  // One copy has all of the parameter, and the other has not.
  void JudgeWhole(const ParamFacts& param, Side side, int64_t length, int64_t bytes) {
    const int32_t call = EventHere().call;
    if (bytes == length) {
      whole_[{param.key, side}] = call;
      return;
    }
    const auto other = whole_.find({param.key, 1 - side});
    if (other == whole_.end() || other->second != call) return;
    Judge(result_, {"KN-16"});
    Add("KN-16", index_,
        std::string("all of ") + param.name + ", as in " + Name(1 - side) + "'s copy",
        std::to_string(bytes) + " bytes of it, of " + std::to_string(length),
        std::string("the copy for ") + Name(side) +
            " does not have all of the weights: write both after each update, on every rank that "
            "has a part");
  }

  void ReadOf(int64_t gather, Side side, const std::string& param) {
    if (side == kBackward) Judge(result_, {"KN-15"});
    const auto [reader, added] = readers_.emplace(gather, side);
    if (reader->second == side || both_[gather]) return;
    both_[gather] = true;
    const std::string other = Name(1 - side);
    Add("KN-15", index_, std::string("the copy of ") + param + " for " + Name(side),
        "what the gather at event " + std::to_string(gather) + " brought, which " + other +
            " reads as well",
        "backward_param_copies = 1, but " + std::string(Name(side)) + " reads " + other +
            "'s copy: gather each one for those that read it");
  }

  std::optional<Side> SideOf(int64_t gather) {
    const auto reader = readers_.find(gather);
    if (reader == readers_.end() || both_[gather]) return std::nullopt;
    return reader->second;
  }

  // Then: which bytes gathers of the two copies send, and whose weights they bring.
  void FollowShards(const Event& event) {
    Forget(event, sent_);
    const Carried* gather = GatherHere();
    const std::optional<Side> side = gather == nullptr ? std::nullopt : SideOf(index_);
    if (!side) return;
    if (event.call != call_) versions_ = {};
    call_ = event.call;
    Compare(*gather, *side);
    const Range* send = SendRange(trace_, event);
    if (send == nullptr) return;
    const auto& before = a_.flow().At(rank_, index_).before;
    for (const Chunk& chunk :
         Only(before[RangeIndex(trace_, event, send)], Content::Kind::kParam)) {
      if (OfUnit(chunk)) Send(send->alloc, send->offset + chunk.offset, chunk, *side);
    }
  }

  void Send(int32_t alloc, int64_t begin, const Chunk& chunk, Side side) {
    const int64_t end = begin + chunk.length;
    for (const auto& piece : sent_.Get(alloc, begin, end)) {
      const std::optional<Side> other = SideOf(piece.value);
      if (!other || *other == side) continue;
      Add("KN-15", index_,
          std::string("a shard of ") + facts_.ByKey(chunk.content.param).name + " for " +
              Name(side),
          "the bytes that the gather at event " + std::to_string(piece.value) + " sent for " +
              Name(*other),
          "backward_param_copies = 1, but gathers for forward and for backward send the same "
          "bytes: there is one copy");
      break;
    }
    sent_.Put(alloc, begin, end, index_);
  }

  void Compare(const Carried& gather, Side side) {
    for (const Chunk& chunk : gather.params) {
      if (!OfUnit(chunk)) continue;
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
  ByteMap<int64_t> held_, sent_;                      // by gather: its event
  std::unordered_map<int64_t, Side> readers_;         // of gathers, by event: the first
  std::unordered_map<int64_t, bool> both_;            // both sides have read it
  std::map<std::pair<int32_t, int>, int32_t> whole_;  // key, side: last call that read all of it
  int32_t call_ = -1;
  std::array<ByteMap<int32_t>, kSides> versions_;  // in call_: elements of parameters, by key
};

bool Asks(const InstanceSpec& spec) { return spec.backward_copies && ShardsParams(spec); }

}  // namespace

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
