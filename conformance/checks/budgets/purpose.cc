// Collectives of a step whose results nobody needs (BU-06).
//
// A result is needed if some rank computes with a byte of it, publishes it or reads it on the host,
// after any number of copies and collectives. What is still there when the step's entry call is
// over may be for what comes next: it is judged once it is overwritten or given back in a later
// step.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/checks/base/byte_map.h"
#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/base/replay.h"
#include "conformance/checks/budgets/budgets.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

using Kind = Content::Kind;

struct Operation {
  int32_t rank = -1;  // of its first member
  int64_t event = -1;
  int32_t instance = 0, call = -1;
  bool judged = false;        // of a step, received bytes that no other requirement follows
  bool read = false;          // by anything but a copy or a collective
  bool kept = false;          // bytes of it outlived steps
  std::set<size_t> fed_into;  // operations that sent bytes of it
};

class Readers : public ReplayVisitor {
 public:
  explicit Readers(const Analysis& a) : a_(a), held_(size_t(a.ranks())) {}

  void OnLocal(int32_t rank, int64_t index) override {
    const Event& event = At(a_.trace(rank).events, index);
    switch (event.kind) {
      case EventKind::kAlloc:
      case EventKind::kFree:
        return Lose(At(held_, rank).EraseBlock(event.alloc), event);
      case EventKind::kCopy:
        return Copy(rank, event);
      default:
        Touch(rank, event);
    }
  }

  void OnCollective(const std::vector<Member>& members) override {
    Operation operation;
    std::set<size_t> sent;
    bool received = false, followed = false;
    for (const Member& member : members) {
      if (member.rank < 0) return;
      const Trace& trace = a_.trace(member.rank);
      const Event& event = At(trace.events, member.event);
      if (const Range* send = SendRange(trace, event)) Add(sent, member.rank, *send);
      const Range* recv = RecvRange(trace, event);
      received |= recv != nullptr && recv->length > 0;
      followed |= Followed(member, event, trace);
    }
    const Member& first = members.front();
    const Event& event = At(a_.trace(first.rank).events, first.event);
    operation.rank = first.rank;
    operation.event = first.event;
    operation.instance = event.instance;
    operation.call = event.call;
    operation.judged = received && !followed && members.size() > 1 && InStep(event) &&
                       !IsGather(event) && !AddsIntegers(event);
    const size_t id = operations_.size();
    operations_.push_back(std::move(operation));
    for (const size_t from : sent) operations_[from].fed_into.insert(id);
    for (const Member& member : members) Receive(member, id);
  }

  // To be asked once, at the end.
  std::vector<Operation> Useless() {
    for (const auto& rank : held_)
      for (const auto& [id, bytes] : rank.bytes()) operations_[id].kept = true;
    std::vector<Operation> useless;
    // Later operations first: they say whether what fed them was needed.
    std::vector<bool> needed(operations_.size(), false), open(operations_.size(), false);
    for (size_t i = operations_.size(); i-- > 0;) {
      const Operation& one = operations_[i];
      needed[i] = one.read;
      open[i] = one.kept;
      for (const size_t to : one.fed_into) {
        const Operation& other = operations_[to];
        if (needed[to]) needed[i] = true;
        if (open[to] && other.instance == one.instance && other.call == one.call) open[i] = true;
      }
      if (one.judged && !needed[i] && !open[i]) useless.push_back(one);
    }
    return useless;
  }
  bool Judged() const {
    for (const Operation& one : operations_)
      if (one.judged) return true;
    return false;
  }

 private:
  char Letter(const Event& event) const {
    return a_.Facts(event.instance).CallAt(event.call).letter;
  }
  bool InStep(const Event& event) const {
    return event.call >= 0 && (Letter(event) == 't' || Letter(event) == 'e');
  }

  // Parameters that arrive are FS-35's and FS-44's, gradients that leave FS-05's and FS-37's.
  bool Followed(const Member& member, const Event& event, const Trace& trace) const {
    const EventFlow& flow = a_.flow().At(member.rank, member.event);
    if (!flow.ran) return true;
    const auto any = [](const std::vector<Chunk>& chunks, Kind kind) {
      return !Only(chunks, kind).empty();
    };
    if (const Range* send = SendRange(trace, event)) {
      const auto& chunks = flow.before[RangeIndex(trace, event, send)];
      if (any(chunks, Kind::kGrad) || any(chunks, Kind::kParam)) return true;
    }
    const Range* recv = RecvRange(trace, event);
    return recv != nullptr && any(flow.after[RangeIndex(trace, event, recv)], Kind::kParam);
  }

  // Each member the same, or one to all: it may bring parameters that were loaded and have no name
  // yet, or a shard of padding alone.
  static bool IsGather(const Event& event) {
    return event.collective == SPF_ALL_GATHER || event.collective == SPF_ALL_GATHER_V ||
           event.collective == SPF_BROADCAST;
  }
  // Flags and bit maps, which are looked at only where something depends on them: torch's
  // DistributedDataParallel sums which parameters were used, and reads it if a rank left some out.
  static bool AddsIntegers(const Event& event) {
    return IsReduction(event.collective) &&
           (event.dtype == SPF_U8 || event.dtype == SPF_I32 || event.dtype == SPF_I64);
  }

  void Add(std::set<size_t>& to, int32_t rank, const Range& range) const {
    for (const auto& piece :
         At(held_, rank).Get(range.alloc, range.offset, range.offset + range.length))
      to.insert(piece.value);
  }

  // Bytes that go in a step were not for anybody; what a save, a load or destroy drops may have
  // been.
  void Lose(const std::set<size_t>& lost, const Event& event) {
    if (InStep(event)) return;
    for (const size_t id : lost) operations_[id].kept = true;
  }
  void Erase(int32_t rank, const Event& event, const Range& range) {
    Lose(At(held_, rank).Erase(range.alloc, range.offset, range.offset + range.length), event);
  }

  void Copy(int32_t rank, const Event& event) {
    const Trace& trace = a_.trace(rank);
    for (const auto& [from, to] : CopiedRuns(trace, event)) {
      const auto copied = At(held_, rank).Get(from.alloc, from.offset, from.offset + from.length);
      Erase(rank, event, to);
      for (const auto& piece : copied) {
        const int64_t begin = piece.begin - from.offset + to.offset;
        At(held_, rank).Put(to.alloc, begin, begin + piece.end - piece.begin, piece.value);
      }
    }
  }

  void Touch(int32_t rank, const Event& event) {
    const Trace& trace = a_.trace(rank);
    std::set<size_t> read;
    for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i)
      if ((trace.ranges[i].access & kRead) != 0) Add(read, rank, trace.ranges[i]);
    for (const size_t id : read) operations_[id].read = true;
    for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i)
      if ((trace.ranges[i].access & kWrite) != 0) Erase(rank, event, trace.ranges[i]);
  }

  void Receive(const Member& member, size_t id) {
    const Trace& trace = a_.trace(member.rank);
    const Event& event = At(trace.events, member.event);
    const Range* recv = RecvRange(trace, event);
    if (recv == nullptr) return;
    Erase(member.rank, event, *recv);
    At(held_, member.rank).Put(recv->alloc, recv->offset, recv->offset + recv->length, id);
  }

  const Analysis& a_;
  std::vector<ByteMap<size_t>> held_;  // by rank: which operation brought the bytes
  std::vector<Operation> operations_;  // in an order in which they could have run
};

}  // namespace

CheckResult CheckPurpose(const Analysis& a) {
  CheckResult result;
  if (a.ranks() < 2) return result;
  if (!a.has_flow()) {
    CannotJudge(result, {"BU-06"}, a.flow_why());
    return result;
  }
  if (!a.ended_well()) return result;  // who would have read it did not come to that
  Readers readers(a);
  a.flow().order().Visit(readers);
  if (readers.Judged()) Judge(result, {"BU-06"});
  FindingSink sink(result);
  for (const Operation& one : readers.Useless()) {
    sink.Add(a.At("BU-06", one.rank, one.event), "some rank computes with its result or reads it",
             "its result is overwritten or given back unread, on every rank",
             "a collective that serves no purpose: every rank waits for all others, for nothing");
  }
  return result;
}

}  // namespace shardproof
