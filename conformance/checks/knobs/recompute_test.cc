// Activations that a case wants to be made again: traces in which they are, and are not.
#include <gtest/gtest.h>

#include <map>
#include <string_view>

#include "conformance/checks/knobs/knobs.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

using Edit = std::function<void(InstanceSpec&)>;
using NodeTest = std::function<bool(const spf_model&, const spf_node&)>;

bool Under(const spf_model& model, int32_t module, std::string_view type) {
  for (int32_t m = module; m >= 0; m = model.modules[m].parent) {
    if (model.modules[m].type == type) return true;
  }
  return false;
}

bool OfALayer(const spf_model& model, const spf_node& node) {
  return Under(model, node.module, "TransformerLayer");
}
bool OfType(const spf_model& model, const spf_node& node, std::string_view type) {
  return OfALayer(model, node) && model.modules[node.module].type == type;
}

// The good engine computes nothing again. Here, before a microbatch's backward begins, these nodes
// run forward again.
void Recompute(MiniRun& mini, const NodeTest& test) {
  const InstanceFacts facts(mini.spec->instances[0], mini.spec->world);
  for (Trace& trace : mini.run.traces) {
    const spf_model& model = facts.model().Tables(facts.Place(trace.rank));
    std::vector<Event> events, forward;
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kCallBegin) forward.clear();
      const bool computes = event.kind == EventKind::kCompute;
      if (computes && event.phase == SPF_FWD) forward.push_back(event);
      if (computes && event.phase != SPF_FWD) {
        for (Event& again : forward) {
          again.flag = true;
          if (test(model, facts.Node(again.id, trace.rank))) events.push_back(again);
        }
        forward.clear();
      }
      events.push_back(event);
    }
    trace.events = std::move(events);
  }
}

MiniRun Mini(const Edit& edit) { return RunMini(MiniCase(2, edit)); }
void Layers(InstanceSpec& spec) { spec.recompute = true; }
void Modules(InstanceSpec& spec) { spec.recompute_modules = "norm,core_attn"; }

std::string Found(const MiniRun& mini) {
  const CheckResult result = CheckRecompute(mini.run);
  EXPECT_TRUE(result.judged.contains("KN-05"));
  return FoundIn(result);
}

TEST(Recompute, LayersThatRunAgain) {
  MiniRun mini = Mini(Layers);
  Recompute(mini, OfALayer);
  EXPECT_EQ(Found(mini), "");
}

TEST(Recompute, AnEngineThatKeepsEverythingIsFound) {
  const MiniRun mini = Mini(Layers);
  const CheckResult result = CheckRecompute(mini.run);
  EXPECT_EQ(FoundIn(result), "KN-05");
  EXPECT_EQ(result.findings.at(0).seen, "what the first forward has kept");
}

TEST(Recompute, NormsAloneAreNotTheLayer) {
  MiniRun mini = Mini(Layers);
  Recompute(mini, [](const spf_model& m, const spf_node& n) { return OfType(m, n, "RMSNorm"); });
  EXPECT_EQ(Found(mini), "KN-05");
}

TEST(Recompute, RunAgainAndNotReadIsFound) {
  MiniRun mini = Mini(Layers);
  Recompute(mini, OfALayer);
  for (Trace& trace : mini.run.traces) {
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kCompute || !event.flag) continue;
      for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
        trace.ranges.push_back(trace.ranges[i]);
        trace.ranges.back().alloc = 1;  // somewhere else
      }
    }
    size_t moved = 0, all = 0;
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kCompute && event.flag) all += event.ranges.size();
    }
    for (Event& event : trace.events) {
      if (event.kind != EventKind::kCompute || !event.flag) continue;
      const auto begin = static_cast<uint32_t>(trace.ranges.size() - all + moved);
      moved += event.ranges.size();
      event.ranges = {begin, begin + event.ranges.size()};
    }
  }
  const CheckResult result = CheckRecompute(mini.run);
  EXPECT_EQ(FoundIn(result), "KN-05");
  EXPECT_EQ(result.findings.at(0).seen, "another copy of it, from before");
}

TEST(RecomputeModules, PartsThatRunAgain) {
  MiniRun mini = Mini(Modules);
  Recompute(mini, [](const spf_model& m, const spf_node& n) {
    return OfType(m, n, "RMSNorm") || OfType(m, n, "Attention");
  });
  EXPECT_EQ(Found(mini), "");
}

TEST(RecomputeModules, AMissingPartIsFound) {
  for (const char* type : {"RMSNorm", "Attention"}) {
    MiniRun mini = Mini(Modules);
    Recompute(mini, [&](const spf_model& m, const spf_node& n) { return OfType(m, n, type); });
    EXPECT_EQ(Found(mini), "KN-05") << type << " alone";
  }
}

TEST(RecomputeModules, WhatIsNotNamedMayBeKept) {
  MiniRun mini = Mini([](InstanceSpec& spec) { spec.recompute_modules = "norm"; });
  Recompute(mini, [](const spf_model& m, const spf_node& n) { return OfType(m, n, "RMSNorm"); });
  EXPECT_EQ(Found(mini), "");
}

TEST(Recompute, WithoutByteRangesItIsNotKnown) {
  MiniRun mini = Mini(Layers);
  mini.run.traces[1].provides.memory = false;
  const CheckResult result = CheckRecompute(mini.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_EQ(NotCheckableIn(result), std::set<std::string>{"KN-05"});
}

}  // namespace
}  // namespace shardproof
