// Where the parameters and gradients of units that are alike lie with fsdp_double_buffer.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "conformance/checks/base/byte_map.h"
#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/knobs/knobs.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

bool Asks(const InstanceSpec& spec) { return spec.double_buffer && ShardsGrads(spec); }

// What two units at most have room for, each kind by itself; of parameters that have a copy for
// backward, each copy by itself.
enum Kind { kArrived, kRead, kReadInBackward, kAdded, kSent, kKinds };

const char* Requirement(int kind) { return kind <= kReadInBackward ? "KN-12" : "KN-13"; }
const char* What(int kind) {
  constexpr std::array<const char*, kKinds> kWhat = {
      "to which gathers bring parameters", "in which nodes read parameters",
      "in which backward reads parameters", "in which nodes add to gradients",
      "from which reductions send gradients"};
  return At(kWhat, kind);
}

// The buffers of one rank and instance, from create to destroy.
class DoubleBuffers : RankCheck {
 public:
  DoubleBuffers(const Analysis& a, int32_t rank, int32_t instance, CheckResult& result,
                FindingSink& sink)
      : RankCheck(a, rank, result, sink),
        instance_(instance),
        facts_(a.Facts(size_t(instance))),
        units_(facts_.UnitsAlike(rank)) {}

  void Run() {
    const std::vector<Carried>& all = CarriedBy(a_, rank_);
    auto carried = all.begin();
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      index_ = static_cast<int64_t>(i);
      const bool carries = carried != all.end() && carried->event == index_;
      if (event.instance == instance_) Step(event, carries ? &*carried : nullptr);
      carried += carries;
    }
  }

 private:
  void Step(const Event& event, const Carried* carried) {
    if (GivesBack(event.kind)) return GiveBack(event);
    if (event.kind == EventKind::kCompute) return Use(event);
    if (carried == nullptr || IsOuter(a_, rank_, *carried)) return;
    if (carried->gather && ShardsParams(facts_.spec()))
      Travel(kArrived, *RecvRange(trace_, event), carried->params);
    if (carried->reduction) Travel(kSent, *SendRange(trace_, event), carried->grads);
  }

  // The parameter is one of a unit that is like others, and of several ranks: else what is kept of
  // it is all of it.
  bool Counts(const ParamFacts& param) const {
    return std::find(units_.begin(), units_.end(), param.unit) != units_.end() &&
           facts_.InnerList(param.expert, rank_)->size() > 1;
  }

  void Travel(int kind, const Range& range, const std::vector<Chunk>& chunks) {
    for (const Chunk& chunk : chunks) {
      if (!Counts(facts_.ByKey(chunk.content.param))) continue;
      const int64_t begin = range.offset + chunk.offset;
      Put(kind, range.alloc, begin, chunk.length, chunk.content.width);
    }
  }

  void Use(const Event& event) {
    if (event.id < 0 || event.id >= facts_.node_count(rank_)) return;
    const spf_uses& uses = facts_.Node(event.id, rank_).uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return;
    for (int32_t i = 0; i < uses.n; ++i) {
      const bool reads = uses.use[i].table == SPF_IN_PARAM && ShardsParams(facts_.spec());
      if (!reads && uses.use[i].table != SPF_IN_GRAD) continue;
      const ParamFacts& param = facts_.Param(rank_, uses.use[i].id);
      const Range& range = trace_.ranges[event.ranges.begin + size_t(i)];
      if (!Counts(param) || range.length == 0) continue;
      const bool copy = facts_.spec().backward_copies && event.phase != SPF_FWD;
      Put(!reads ? kAdded
          : copy ? kReadInBackward
                 : kRead,
          range.alloc, range.offset, range.length, range.length / param.numel);
    }
  }

  void Put(int kind, int32_t alloc, int64_t offset, int64_t length, int64_t width) {
    Judge(result_, {Requirement(kind)});
    ByteMap<int>& seen = At(seen_, kind);
    seen.Put(alloc, offset, offset + length, kind);
    At(width_, kind) = std::max(At(width_, kind), width);
    const int64_t copies = kind == kArrived && facts_.spec().backward_copies ? 2 : 1;
    const int64_t most = 2 * copies * UnitBytes(kind), bytes = seen.Bytes(kind);
    if (bytes <= most || !told_.insert(Requirement(kind)).second) return;
    Add(Requirement(kind), index_,
        "at most " + std::to_string(most) + " bytes since create: two buffers of a unit" +
            (copies > 1 ? ", of each copy" : ""),
        std::to_string(bytes) + " bytes",
        std::string("fsdp_double_buffer = 1, but the bytes ") + What(kind) + " of " +
            std::to_string(units_.size()) +
            " units that are alike are more than two units have: let all take two buffers in turn");
  }

  // With one row of padding for each parameter.
  int64_t UnitBytes(int kind) const {
    int64_t elements = 0;
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      const ParamFacts& param = facts_.Param(rank_, id);
      if (param.unit == units_.front() && Counts(param)) elements += param.numel + param.row;
    }
    return elements * At(width_, kind);
  }

  // With destroy all ends; before it such memory stays.
  void GiveBack(const Event& event) {
    const bool ends = facts_.CallAt(event.call).letter == 'd';
    for (int kind = 0; kind < kKinds; ++kind) {
      ByteMap<int>& seen = At(seen_, kind);
      if (seen.Get(event.alloc, 0, INT64_MAX).empty()) continue;
      if (ends) {
        seen.EraseBlock(event.alloc);
        told_.clear();
        continue;
      }
      if (!told_.insert(Requirement(kind)).second) continue;
      Add(Requirement(kind), index_, "kept until destroy",
          "freed in " + a_.CallName(rank_, instance_, event.call),
          std::string("fsdp_double_buffer = 1, but a block with bytes ") + What(kind) +
              " is freed: keep it for the next unit, and mark it with SPF_K_DISCARD");
    }
  }

  const int32_t instance_;
  const InstanceFacts& facts_;
  const std::vector<int32_t> units_;
  int64_t index_ = 0;
  std::array<ByteMap<int>, kKinds> seen_;  // bytes that were used so since create
  std::array<int64_t, kKinds> width_{};    // of an element
  std::set<std::string> told_;             // since create: requirements
};

}  // namespace

CheckResult CheckDoubleBuffers(const Analysis& a) {
  CheckResult result;
  bool asked = false;
  for (size_t i = 0; i < a.n_instances(); ++i) asked |= Asks(a.Facts(i).spec());
  if (!asked) return result;
  std::string why = a.has_flow() ? "" : a.flow_why();
  for (const Trace& trace : a.traces()) {
    if (!trace.provides.memory)
      why = "rank " + std::to_string(trace.rank) + "'s trace has no memory events";
  }
  if (!why.empty()) {
    CannotJudge(result, {"KN-12", "KN-13"}, why);
    return result;
  }
  FindingSink sink(result);
  for (size_t i = 0; i < a.n_instances(); ++i) {
    if (!Asks(a.Facts(i).spec())) continue;
    for (int32_t rank = 0; rank < a.ranks(); ++rank) {
      if (!a.Facts(i).InGrid(rank) || a.Facts(i).UnitsAlike(rank).empty()) continue;
      DoubleBuffers(a, rank, static_cast<int32_t>(i), result, sink).Run();
    }
  }
  return result;
}

}  // namespace shardproof
