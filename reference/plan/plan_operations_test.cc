#include "reference/plan/plan_operations.h"

#include <gtest/gtest.h>

#include <map>

#include "reference/plan/tables_for_test.h"

namespace reference {
namespace {

constexpr const char* kPhases[] = {"fwd", "bwd", "dgrad", "wgrad"};

std::string Operations(const std::vector<PlannedNode>& nodes, const std::string& name) {
  std::string text;
  for (const PlannedNode& planned : nodes) {
    if (Name(planned.node) != name) continue;
    for (const Operation& o : planned.operations) {
      text += (text.empty() ? "" : " ") + std::string(o.node->name) + ":" + kPhases[o.phase] +
              (o.recompute ? "!" : "");
    }
  }
  return text;
}

std::vector<PlannedNode> Plan(const TablesForTest& tables, const ScheduleSettings& settings) {
  return PlanOperations(tables.model(), DeriveScheduleNodes(tables.model(), tables.program()),
                        settings);
}

TEST(PlanOperations, DelayedHalves) {
  const TablesForTest tables("m");
  const auto nodes = Plan(tables, {.delay_wgrad = true});
  EXPECT_EQ(Operations(nodes, "b.0.mlp.backward"),
            "layers.0.experts.fc2:dgrad layers.0.experts.act:bwd layers.0.experts.fc1:dgrad");
  EXPECT_EQ(Operations(nodes, "b.0.mlp.weight_grads"),
            "layers.0.experts.fc2:wgrad layers.0.experts.fc1:wgrad");
  EXPECT_EQ(Operations(nodes, "b.0.pre_dispatch.weight_grads"),
            "layers.0.shared.fc2:wgrad layers.0.shared.fc1:wgrad layers.0.proj:wgrad "
            "layers.0.qkv:wgrad");
  EXPECT_EQ(Operations(nodes, "b.0.pre_dispatch.backward"),
            "layers.0.permute:bwd layers.0.router:bwd layers.0.shared.fc2:dgrad "
            "layers.0.shared.swiglu:bwd layers.0.shared.fc1:dgrad layers.0.mlp_norm:bwd "
            "layers.0.proj:dgrad layers.0.core:bwd layers.0.qkv:dgrad layers.0.attn_norm:bwd");
  EXPECT_EQ(Operations(nodes, "b.post_process"), "head:bwd final_norm:bwd") << "not deferred";
}

// What is gathered is there for compute only.
TEST(PlanOperations, ParametersAreNotUsedOnTheStreamOfAllToAlls) {
  const TablesForTest tables("m", false, true);
  try {
    Plan(tables, {});
    FAIL() << "a weight in combine";
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("layers.0.unpermute uses a parameter in "
                        "f.0.combine.forward"),
              std::string::npos)
        << error.what();
  }
}

TEST(PlanOperations, MtpProjectionComesLast) {
  const TablesForTest tables("d", true);
  const std::string text =
      Operations(Plan(tables, {.delay_wgrad = true}), "b.1.pre_dispatch.weight_grads");
  EXPECT_TRUE(text.ends_with("mtp.layer.qkv:wgrad mtp.eh_proj:wgrad")) << text;
}

TEST(PlanOperations, RecomputeRightBeforeItsPart) {
  const TablesForTest tables("m");
  ScheduleSettings settings;
  for (int32_t m = 0; m < tables.model().n_modules; ++m) {
    settings.recomputed.push_back(std::string(tables.model().modules[m].type) == "RMSNorm" &&
                                  AncestorOfType(tables.model(), m, "TransformerLayer") >= 0);
  }
  const auto nodes = Plan(tables, settings);
  EXPECT_TRUE(Operations(nodes, "b.0.pre_dispatch.backward")
                  .starts_with("layers.0.attn_norm:fwd! layers.0.mlp_norm:fwd! "));
  EXPECT_EQ(Operations(nodes, "b.0.combine.backward"),
            "layers.0.unpermute:bwd layers.0.combine:bwd");
}

TEST(PlanOperations, OnlyCommunicationIsOnA2a) {
  const TablesForTest tables("md", true);
  for (const PlannedNode& node : Plan(tables, {.delay_wgrad = true})) {
    for (const Operation& o : node.operations) {
      const std::string name = o.node->name;
      const bool communicates = name.ends_with(".dispatch") || name.ends_with(".dispatch_probs") ||
                                name.ends_with(".combine") || name.ends_with(".unpermute");
      EXPECT_EQ(node.on_a2a(), communicates) << name;
    }
  }
}

using Values = std::map<std::pair<bool, int32_t>, int>;

// Every value dies once, after its last user, and never on a2a if a delayed half uses it.
void ExpectDeaths(const TablesForTest& tables, bool delay) {
  const auto nodes = Plan(tables, {.delay_wgrad = delay});
  const auto deaths = PlanDeaths(nodes, tables.model().n_values);
  Values died, outside;
  size_t operation = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (size_t i = 0; i < nodes[n].operations.size(); ++i) {
      for (const spf_use& use : UsesOf(nodes[n].operations[i])) {
        if (use.table != SPF_IN_ACT && use.table != SPF_IN_DACT) continue;
        const std::pair<bool, int32_t> value(use.table == SPF_IN_DACT, use.id);
        EXPECT_EQ(died.count(value), 0U) << "value " << use.id << " is used after its death";
        if (!nodes[n].chained()) outside[value] = 1;
      }
      for (const ValueRef& dead : deaths[operation++]) {
        const std::pair<bool, int32_t> value(dead.gradient, dead.value);
        EXPECT_EQ(++died[value], 1);
        if (outside.count(value) != 0) {
          EXPECT_FALSE(nodes[n].on_a2a());
        }
      }
    }
  }
  for (int32_t v = 0; v < tables.model().n_values; ++v) {
    EXPECT_EQ((died[{false, v}]), 1) << "value " << v << " is never freed";
  }
}

TEST(PlanOperations, Deaths) {
  for (const char* layers : {"m", "dm", "mmm"}) {
    for (bool mtp : {false, true}) {
      for (bool delay : {false, true}) ExpectDeaths(TablesForTest(layers, mtp), delay);
    }
  }
}

// A value whose last user is an exchange and which a delayed half reads before: freed on compute.
TEST(PlanOperations, DeathWaitsForUsersOutsideTheChain) {
  const spf_use reads{SPF_IN_DACT, SPF_READ, 0, 0}, writes{SPF_IN_DACT, SPF_WRITE, 0, 0};
  spf_node writer{}, reader{};
  writer.uses[SPF_DGRAD] = {1, &writes};
  reader.uses[SPF_BWD] = reader.uses[SPF_WGRAD] = {1, &reads};
  const auto planned = [](Action action, LayerNode node, const Operation& operation) {
    return PlannedNode{{action, Side::kBackward, 0, node}, {operation}};
  };
  std::vector<PlannedNode> nodes{
      planned(Action::kBackward, LayerNode::kMlp, {&writer, SPF_DGRAD}),
      planned(Action::kWeightGrads, LayerNode::kMlp, {&reader, SPF_WGRAD}),
      planned(Action::kBackward, LayerNode::kDispatch, {&reader, SPF_BWD}),
      planned(Action::kBackward, LayerNode::kPreDispatch, {&writer, SPF_WGRAD})};
  auto deaths = PlanDeaths(nodes, 1);
  EXPECT_TRUE(deaths[2].empty());
  EXPECT_EQ(deaths[3].size(), 1U);
  nodes.erase(nodes.begin() + 1);
  deaths = PlanDeaths(nodes, 1);
  EXPECT_EQ(deaths[1].size(), 1U) << "without one, right after the exchange";
}

}  // namespace
}  // namespace reference
