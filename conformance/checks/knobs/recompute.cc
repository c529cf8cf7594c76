// recompute and recompute_modules: backward reads activations that forward has made again.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/knobs/knobs.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

bool Lists(const std::string& commas, std::string_view word) {
  return ("," + commas + ",").find("," + std::string(word) + ",") != std::string::npos;
}

// The outermost module around this one of such a type, or -1.
int32_t Around(const spf_model& model, int32_t module, std::string_view type) {
  int32_t found = -1;
  for (int32_t m = module; m >= 0; m = model.modules[m].parent) {
    if (model.modules[m].type == type) found = m;
  }
  return found;
}

// The part that is run again and has the module, or -1.
int32_t PartOf(const InstanceSpec& spec, const spf_model& model, int32_t module) {
  const int32_t layer = Around(model, module, "TransformerLayer");
  if (layer < 0 || spec.recompute) return layer;
  const std::string_view type = model.modules[module].type;
  if (Lists(spec.recompute_modules, "norm") && type == "RMSNorm") return module;
  if (Lists(spec.recompute_modules, "core_attn") && type == "Attention") return module;
  return Lists(spec.recompute_modules, "moe") ? Around(model, module, "MoE") : -1;
}

const char* KnobOf(const InstanceSpec& spec) {
  return spec.recompute ? "recompute = 1" : "recompute_modules";
}

// One rank's values that backward must find made again.
class Again : RankCheck {
 public:
  Again(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink) {}

  void Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == EventKind::kCallBegin) made_.clear();
      if (event.kind != EventKind::kCompute) continue;
      const InstanceFacts& facts = a_.Facts(event.instance);
      const InstanceSpec& spec = facts.spec();
      const bool asked = spec.recompute || !spec.recompute_modules.empty();
      if (!asked || event.id < 0 || event.id >= facts.node_count(rank_)) continue;
      const spf_uses& uses = facts.Node(event.id, rank_).uses[event.phase];
      if (static_cast<uint32_t>(uses.n) != event.ranges.size()) continue;
      Visit(event, static_cast<int64_t>(i), facts, uses);
    }
  }

 private:
  struct Made {
    bool again = false;
    Range at;
  };

  // Values that nodes of a part write, and that no forward outside it reads: those are kept as what
  // it is run again from, or for others.
  std::set<int32_t> Inside(const InstanceFacts& facts, int32_t instance) {
    const auto [known, fresh] = inside_.try_emplace(instance);
    if (!fresh) return known->second;
    const spf_model& model = facts.model().Tables(facts.Place(rank_));
    std::map<int32_t, std::set<int32_t>> writers, readers;  // by value: parts
    for (int32_t n = 0; n < facts.node_count(rank_); ++n) {
      const spf_node& node = facts.Node(n, rank_);
      const bool computed = node.kind == SPF_NODE_COMPUTE;
      const int32_t part = computed ? PartOf(facts.spec(), model, node.module) : -1;
      const spf_uses& uses = node.uses[SPF_FWD];
      for (int32_t u = 0; u < uses.n; ++u) {
        if (uses.use[u].table != SPF_IN_ACT) continue;
        const bool reads = uses.use[u].access == SPF_READ;
        (reads ? readers : writers)[uses.use[u].id].insert(
            reads ? Around(model, node.module, "TransformerLayer") : part);
      }
    }
    for (const auto& [value, parts] : writers) {
      if (parts.contains(-1) || !IsFloating(model.values[value].dtype)) continue;
      const int32_t layer = Around(model, *parts.begin(), "TransformerLayer");
      const std::set<int32_t>& read = readers[value];
      const bool leaves =
          std::any_of(read.begin(), read.end(), [&](int32_t in) { return in != layer; });
      if (!leaves) known->second.insert(value);
    }
    return known->second;
  }

  void Visit(const Event& event, int64_t index, const InstanceFacts& facts, const spf_uses& uses) {
    const std::set<int32_t> inside = Inside(facts, event.instance);
    for (int32_t u = 0; u < uses.n; ++u) {
      const spf_use& use = uses.use[u];
      if (use.table != SPF_IN_ACT || !inside.contains(use.id)) continue;
      const Range& range = trace_.ranges[event.ranges.begin + size_t(u)];
      const Place place{event.instance, event.microbatch, use.id};
      if (event.phase == SPF_FWD) {
        if (use.access != SPF_READ) made_[place] = {event.flag, range};
        continue;
      }
      const auto made = made_.find(place);
      if (made == made_.end()) continue;
      Judge(result_, {"KN-05"});
      const bool there =
          made->second.at.alloc == range.alloc && made->second.at.offset == range.offset;
      if (made->second.again && there) continue;
      const spf_model& model = facts.model().Tables(facts.Place(rank_));
      Add("KN-05", index,
          std::string(model.values[use.id].name) + " as a forward that is run again has left it",
          made->second.again ? "another copy of it, from before"
                             : "what the first forward has kept",
          std::string(KnobOf(facts.spec())) +
              (facts.spec().recompute ? "" : " = " + facts.spec().recompute_modules) +
              ", but backward reads an activation that was kept: its forward is not run again, "
              "with "
              "SPF_COMPUTE_RECOMPUTE, before it");
    }
  }

  using Place = std::tuple<int32_t, int32_t, int32_t>;  // instance, microbatch, value
  std::map<int32_t, std::set<int32_t>> inside_;         // by instance
  std::map<Place, Made> made_;                          // in this entry call
};

}  // namespace

CheckResult CheckRecompute(const Analysis& a) {
  CheckResult result;
  bool asked = false;
  for (size_t i = 0; i < a.n_instances(); ++i) {
    const InstanceSpec& spec = a.Facts(i).spec();
    asked |= spec.recompute || !spec.recompute_modules.empty();
  }
  if (!asked) return result;
  for (const Trace& trace : a.traces()) {
    if (trace.provides.work && trace.provides.memory) continue;
    CannotJudge(result, {"KN-05"},
                "rank " + std::to_string(trace.rank) + "'s trace has no work or no byte ranges");
    return result;
  }
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) Again(a, rank, result, sink).Run();
  return result;
}

}  // namespace shardproof
