#include "conformance/checks/lifetime/lifetime.h"

#include <algorithm>
#include <set>

#include "conformance/checks/base/windows.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

using Kind = Content::Kind;

// What is wrong with a chunk of a parameter range, or null.
const char* WrongWith(const Chunk& chunk, const ParamFacts& param) {
  const Content& content = chunk.content;
  switch (content.kind) {
    case Kind::kPoison:
      return "it was never written, or was released before";
    case Kind::kGrad:
    case Kind::kMixed:
      return "it holds a gradient";
    case Kind::kParam:
      if (content.param != param.key) return "it holds another parameter";
      if (content.element != chunk.offset / std::max<int64_t>(1, content.width))
        return "it holds other elements";
      return nullptr;
    default:
      return nullptr;
  }
}

void JudgeReads(const Analysis& a, int32_t rank, FindingSink& sink) {
  const Trace& trace = a.trace(rank);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != EventKind::kCompute) continue;
    const InstanceFacts& facts = a.Facts(event.instance);
    const EventFlow& flow = a.flow().At(rank, static_cast<int64_t>(i));
    if (!flow.ran || event.id < 0 || event.id >= facts.node_count(rank)) continue;
    const spf_uses& uses = facts.Node(event.id, rank).uses[event.phase];
    if (static_cast<size_t>(uses.n) != flow.before.size()) continue;
    for (int32_t k = 0; k < uses.n; ++k) {
      if (uses.use[k].table != SPF_IN_PARAM) continue;
      const ParamFacts& param = facts.Param(rank, uses.use[k].id);
      for (const Chunk& chunk : At(flow.before, k)) {
        const char* wrong = WrongWith(chunk, param);
        if (wrong == nullptr) continue;
        const int64_t element = chunk.offset / static_cast<int64_t>(DtypeBytes(param.dtype));
        Finding finding = a.At(param.unit >= 0 ? "FS-02" : "FS-14", rank, static_cast<int64_t>(i));
        finding.expected =
            param.name + "[" + std::to_string(element) + "], gathered and not released";
        finding.seen = a.ContentText(chunk.content);
        finding.message =
            param.name + " is read, but from element " + std::to_string(element) + " on " + wrong;
        sink.Add(std::move(finding));
        break;
      }
    }
  }
}

// Where two microbatches interleave, how far their sides may be ahead together is the schedule's
// own rule (EP-17); but a limit of 0 is one there, too.
bool LimitsAhead(const InstanceFacts& facts) {
  return !facts.Interleaves() || facts.spec().prefetch_limit_bytes == 0;
}

class UnitWindows {
 public:
  UnitWindows(const Analysis& a, int32_t rank, FindingSink& sink)
      : a_(a), rank_(rank), sink_(sink), found_(FindWindows(a, rank)) {}

  void JudgeAll() {
    for (const ParamUse& use : found_.uses) JudgeBehind(use);
    for (const Window& window : found_.windows) JudgeAhead(window);
    JudgeCallEnds();
  }

 private:
  bool Sharded(const Window& window) const {
    return ShardsParams(a_.Facts(size_t(window.instance)).spec());
  }
  bool Judged(const Window& window) const { return window.unit >= 0 && Sharded(window); }
  bool OneAtATime(const Window& window) const {
    return Judged(window) && !a_.Facts(size_t(window.instance)).Interleaves();
  }
  std::string UnitName(const Window& window) const {
    if (window.unit < 0) return "what is outside units";
    return "unit " + a_.Facts(size_t(window.instance)).ModuleName(window.unit, rank_);
  }

  // While a unit computes, no other unit that was used since its gather may still be there.
  void JudgeBehind(const ParamUse& use) {
    const bool in_unit =
        std::any_of(use.units.begin(), use.units.end(), [](int32_t unit) { return unit >= 0; });
    if (!in_unit) return;
    for (const Window& window : found_.windows) {
      if (window.instance != use.instance || !OneAtATime(window) || !window.OpenAt(use.event))
        continue;
      if (std::find(use.units.begin(), use.units.end(), window.unit) != use.units.end()) continue;
      const int64_t first = FirstBefore(window);
      if (first < 0 || first > use.event) continue;
      const InstanceSpec& spec = a_.Facts(size_t(window.instance)).spec();
      if (window.KeptInPipeline(spec, a_.trace(rank_), use.event)) continue;
      if (!reported_.insert(window.gather).second) continue;
      Finding finding = a_.At("FS-03", rank_, use.event);
      finding.begins = window.gather;
      finding.expected = UnitName(window) + " released before another unit computes";
      finding.seen = std::to_string(window.bytes) + " bytes of it, gathered at event " +
                     std::to_string(window.gather);
      finding.message =
          UnitName(window) + " was used and is still materialised while another unit computes";
      sink_.Add(std::move(finding));
    }
  }

  // The first read of those that go before another unit computes: with reshard_after_forward = 0
  // all of a unit's backward.
  int64_t FirstBefore(const Window& window) const {
    const InstanceFacts& facts = a_.Facts(size_t(window.instance));
    const bool keeps =
        facts.spec().reshard_after_forward == 0 && facts.CallAt(window.call).letter == 't';
    if (keeps) return window.FirstInBackward(a_.trace(rank_));
    return window.reads.empty() ? -1 : window.reads.front();
  }

  bool Limited(const Window& window) const {
    return Judged(window) && LimitsAhead(a_.Facts(size_t(window.instance)));
  }

  // At each gather: bytes of units that are there, unread, and not what is needed next.
  void JudgeAhead(const Window& window) {
    if (!Limited(window)) return;
    const InstanceSpec& spec = a_.Facts(size_t(window.instance)).spec();
    const auto next =
        std::find_if(found_.uses.begin(), found_.uses.end(), [&](const ParamUse& use) {
          return use.event > window.last_gather && use.instance == window.instance;
        });
    if (next == found_.uses.end()) return;
    int64_t bytes = 0, units = 0;
    for (const Window& other : found_.windows) {
      if (other.instance != window.instance || other.unit < 0 || other.gather > window.last_gather)
        continue;
      if (other.release >= 0 && other.release <= window.last_gather) continue;
      if (!other.reads.empty() && other.reads.front() <= window.last_gather) continue;
      // A unit that this rank does not run is gathered for the others' sake.
      if (other.reads.empty() &&
          a_.Facts(size_t(other.instance)).UnitMayBeAbsent(rank_, other.call, other.unit)) {
        continue;
      }
      if (std::find(next->units.begin(), next->units.end(), other.unit) != next->units.end())
        continue;
      // The unit runs before that, but reads no parameter: an embedding's backward.
      if (!other.reads.empty() && other.reads.front() < next->event) continue;
      bytes += other.bytes;
      ++units;
    }
    const bool within =
        spec.prefetch_limit_bytes < 0 ? units <= 1 : bytes <= spec.prefetch_limit_bytes;
    peak_ahead_ = std::max(peak_ahead_, bytes);
    if (within) return;
    Finding finding = a_.At("FS-09", rank_, window.last_gather);
    finding.expected =
        spec.prefetch_limit_bytes < 0
            ? "at most one unit ahead of need"
            : "at most " + std::to_string(spec.prefetch_limit_bytes) + " bytes ahead";
    finding.seen = std::to_string(units) + " units, " + std::to_string(bytes) + " bytes";
    finding.message = "gathering " + UnitName(window) + " exceeds the prefetch limit";
    sink_.Add(std::move(finding));
  }

  void JudgeCallEnds() {
    const auto& events = a_.trace(rank_).events;
    for (size_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      if (event.kind != EventKind::kCallEnd || event.status != SPF_OK) continue;
      const std::string call = a_.CallName(rank_, event.instance, event.call);
      const bool eval = call.starts_with("eval_step");
      if (!eval && !call.starts_with("train_step")) continue;
      for (const Window& window : found_.windows) {
        if (window.instance != event.instance || window.call != event.call) continue;
        // What is outside units stays until the end of the call.
        if (eval ? !Sharded(window) : !Judged(window)) continue;
        if (!window.OpenAt(static_cast<int64_t>(i))) continue;
        Finding finding = a_.At(eval ? "FS-13" : "FS-03", rank_, window.gather);
        finding.expected = UnitName(window) + " released when " + call + " ends";
        finding.seen = std::to_string(window.bytes) + " bytes still gathered";
        finding.message = UnitName(window) + " is still materialised at the end of " + call;
        sink_.Add(std::move(finding));
      }
    }
  }

  const Analysis& a_;
  const int32_t rank_;
  FindingSink& sink_;
  const RankWindows found_;
  std::set<int64_t> reported_;
  int64_t peak_ahead_ = 0;
};

}  // namespace

CheckResult CheckGatheredWhenRead(const Analysis& a) {
  CheckResult result;
  if (!a.has_flow()) {
    NeedsCase(a, result, {"FS-02", "FS-14"});
    return result;
  }
  Judge(result, {"FS-02", "FS-14"});
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) JudgeReads(a, rank, sink);
  return result;
}

CheckResult CheckUnitWindows(const Analysis& a) {
  CheckResult result;
  if (!a.has_flow()) {
    NeedsCase(a, result, {"FS-03", "FS-09", "FS-13"});
    return result;
  }
  bool sharded = false, ahead = false;
  for (size_t i = 0; i < a.n_instances(); ++i) {
    const bool shards = ShardsParams(a.Facts(i).spec());
    sharded |= shards;
    ahead |= shards && LimitsAhead(a.Facts(i));
  }
  if (!sharded) return result;
  Judge(result, {"FS-03", "FS-13"});
  if (ahead) Judge(result, {"FS-09"});
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) UnitWindows(a, rank, sink).JudgeAll();
  return result;
}

CheckResult CheckLifetime(const Analysis& a) {
  CheckResult result;
  if (!a.legal()) return result;
  result.Merge(CheckGatheredWhenRead(a));
  result.Merge(CheckUnitWindows(a));
  result.Merge(CheckMemory(a));
  result.Merge(CheckHostReads(a));
  return result;
}

}  // namespace shardproof
