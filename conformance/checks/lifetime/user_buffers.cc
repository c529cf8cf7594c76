#include "conformance/checks/lifetime/user_buffers.h"

#include <algorithm>

#include "conformance/checks/base/carried.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

bool Asked(const Analysis& a, const Event& event) { return a.Facts(event.instance).spec().nccl_ub; }

// Registrations as the host makes them, and the collectives between them.
class Registered {
 public:
  Registered(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : a_(a), rank_(rank), trace_(a.trace(rank)), result_(result), sink_(sink) {}

  void Run() {
    const std::vector<Carried>& all = CarriedBy(a_, rank_);
    auto carried = all.begin();
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == EventKind::kGroupRegister) with_[event.alloc].insert(Comm(event));
      if (event.kind == EventKind::kGroupDeregister) with_[event.alloc].erase(Comm(event));
      if (GivesBack(event.kind)) with_.erase(event.alloc);
      if (carried == all.end() || carried->event != static_cast<int64_t>(i)) continue;
      if (Asked(a_, event)) JudgeOne(*carried, event);
      ++carried;
    }
  }

 private:
  const std::string& Comm(const Event& event) const { return At(trace_.groups, event.group).comm; }

  void JudgeOne(const Carried& carried, const Event& event) {
    Judge(result_, {"FS-43"});
    JudgeBlock(carried, event, SendRange(trace_, event), "sends from");
    JudgeBlock(carried, event, RecvRange(trace_, event), "receives into");
  }

  void JudgeBlock(const Carried& carried, const Event& event, const Range* range,
                  const char* does) {
    if (range == nullptr) return;
    const auto block = with_.find(range->alloc);
    if (block != with_.end() && block->second.contains(Comm(event))) return;
    const bool with_others = block != with_.end() && !block->second.empty();
    const std::string what =
        carried.gather ? "a gather of parameters " : "a reduction of gradients ";
    sink_.Add(a_.At("FS-43", rank_, carried.event), "memory that is registered with the group",
              "block " + std::to_string(range->alloc) +
                  (with_others ? ", which is registered with another group"
                               : ", which is not registered"),
              "nccl_ub = 1, but " + what + does +
                  " memory that is not registered with its group: group_register it");
  }

  const Analysis& a_;
  const int32_t rank_;
  const Trace& trace_;
  CheckResult& result_;
  FindingSink& sink_;
  std::map<int32_t, std::set<std::string>> with_;  // communicators, by block
};

}  // namespace

CheckResult CheckUserBuffers(const Analysis& a) {
  CheckResult result;
  if (!a.has_case() || !a.legal()) return result;
  bool asked = false;
  for (size_t i = 0; i < a.n_instances(); ++i) asked |= a.Facts(i).spec().nccl_ub;
  if (!asked) return result;
  if (!a.has_flow()) {
    NeedsCase(a, result, {"FS-43"});
    return result;
  }
  for (const Trace& trace : a.traces()) {
    if (trace.provides.memory) continue;
    CannotJudge(result, {"FS-43"},
                "rank " + std::to_string(trace.rank) + "'s trace has no memory events");
    return result;
  }
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) Registered(a, rank, result, sink).Run();
  return result;
}

void KeptBuffers::Make(int32_t alloc, const Class& kind) {
  const auto [number, added] = numbers_.try_emplace(kind, classes_.size());
  if (added) classes_.emplace_back().what = kind;
  blocks_[alloc] = number->second;
  classes_[number->second].held += std::get<0>(kind);
}

void KeptBuffers::Drop(int32_t alloc) {
  const auto block = blocks_.find(alloc);
  if (block == blocks_.end()) return;
  used_.EraseBlock(alloc);
  touched_.EraseBlock(alloc);
  OfClass& kind = classes_[block->second];
  kind.busy.erase(alloc);
  kind.held -= SizeOf(block->second);
  blocks_.erase(block);
}

void KeptBuffers::Use(int32_t alloc, int64_t begin, int64_t end) {
  const auto block = blocks_.find(alloc);
  if (block == blocks_.end()) return;
  used_.Put(alloc, begin, end, block->second);
  touched_.Put(alloc, begin, end, block->second);
  OfClass& kind = classes_[block->second];
  kind.peak = std::max(kind.peak, used_.Bytes(block->second));
  kind.busy.insert(alloc);
  kind.most_busy = std::max(kind.most_busy, kind.busy.size());
}

void KeptBuffers::Discard(int32_t alloc, int64_t begin, int64_t end) {
  const auto block = blocks_.find(alloc);
  if (block == blocks_.end()) return;
  used_.Erase(alloc, begin, end);
  touched_.Put(alloc, begin, end, block->second);
  if (used_.Get(alloc, 0, SizeOf(block->second)).empty()) classes_[block->second].busy.erase(alloc);
}

// A registration more or less; what is in use stays in use.
void KeptBuffers::Reclass(const Event& event) {
  const auto block = blocks_.find(event.alloc);
  if (block == blocks_.end()) return;
  Class kind = classes_[block->second].what;
  const std::string& comm = At(trace_.groups, event.group).comm;
  if (event.kind == EventKind::kGroupRegister) {
    std::get<2>(kind).insert(comm);
  } else {
    std::get<2>(kind).erase(comm);
  }
  const auto in_use = used_.Get(event.alloc, 0, std::get<0>(kind));
  Drop(event.alloc);
  Make(event.alloc, kind);
  for (const auto& piece : in_use) Use(event.alloc, piece.begin, piece.end);
}

void KeptBuffers::See(const Event& event) {
  switch (event.kind) {
    case EventKind::kAlloc:
      if (event.id == place_) Make(event.alloc, {event.count, event.purpose, {}});
      return;
    case EventKind::kGroupRegister:
    case EventKind::kGroupDeregister:
      return Reclass(event);
    case EventKind::kFree:
    case EventKind::kRelease:
      return Drop(event.alloc);
    default:
      break;
  }
  const bool discards = event.kind == EventKind::kLaunch && event.id == SPF_K_DISCARD;
  for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
    const Range& range = trace_.ranges[i];
    if ((range.access & kWrite) == 0) continue;
    if (discards) {
      Discard(range.alloc, range.offset, range.offset + range.length);
    } else {
      Use(range.alloc, range.offset, range.offset + range.length);
    }
  }
}

int64_t KeptBuffers::SparedBytes() const {
  int64_t bytes = 0;
  for (size_t number = 0; number < classes_.size(); ++number) {
    const auto& [kind, held, peak, now_busy, most_busy] = classes_[number];
    const auto& [size, purpose, groups] = kind;
    if (most_busy == 0 || (place_ == SPF_REGISTRABLE && groups.empty())) continue;
    const int64_t used = used_.Bytes(number);
    const auto busy = static_cast<int64_t>(most_busy);
    const int64_t blocks = busy + (twice_ ? busy : 1);
    bytes += place_ == SPF_REGISTRABLE
                 ? std::min(held, twice_ ? 2 * peak : peak) - used
                 : std::max<int64_t>(0, std::min(touched_.Bytes(number), blocks * size) - used);
  }
  return bytes;
}

}  // namespace shardproof
