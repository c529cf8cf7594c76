// The generated orders against tables that are written out.
#include "conformance/checks/schedule/expected.h"

#include <gtest/gtest.h>

#include <sstream>

namespace shardproof::schedule {
namespace {

struct Options {
  int32_t layers = 2, microbatches = 2;
  bool delay = false, early = false, shards_params = true, overlap = true;
};

Plan PlanOf(const Options& o) {
  Plan plan;
  plan.overlap = o.overlap;
  plan.early_release = o.early;
  std::vector<int32_t> layers;
  for (int32_t l = 0; l < o.layers; ++l) layers.push_back(l);
  plan.layers.assign(size_t(o.microbatches), layers);
  plan.has = [o](const Key& key) {
    if (key.node == ScheduleNode::kMtpPost) return false;
    const bool weights = key.node == ScheduleNode::kMlp || key.node == ScheduleNode::kPreDispatch;
    return key.side != Side::kWeights || (o.delay && weights);
  };
  return plan;
}

std::string Table(const Options& o) {
  ShardingPlan sharding;
  sharding.shards_params = o.shards_params;
  sharding.delay = o.delay;
  sharding.moe = [](int32_t) { return true; };
  sharding.reads = [](const Key& key) -> std::vector<std::string> {
    if (key.side == Side::kWeights) return {};
    if (key.node == ScheduleNode::kPre && key.side == Side::kForward) return {"Ne"};
    if (key.node == ScheduleNode::kPost) return {"Nh"};
    if (key.node == ScheduleNode::kPreDispatch) return {"D" + std::to_string(key.layer)};
    if (key.node == ScheduleNode::kMlp) return {"E" + std::to_string(key.layer)};
    return {};
  };
  std::string text;
  for (const std::string& token : ExpectedTable(PlanOf(o), sharding))
    text += (text.empty() ? "" : "; ") + token;
  return text;
}

const char* const kForward0 =
    "AG Ne; pre.f0; AG D0; pd.f0[L0]; disp.f0[L0]; AG E0; mlp.f0[L0]; comb.f0[L0]; REL U0; AG D1; "
    "pd.f0[L1]; "
    "disp.f0[L1]; AG E1; mlp.f0[L1]; comb.f0[L1]; REL U1; AG Nh; post.f0; loss.f0";

TEST(Expected, TableA) {
  EXPECT_EQ(Table({}),
            std::string(kForward0) +
                "; loss.b0; pre.f1; post.b0; "
                "comb.b0[L1]; AG D0; pd.f1[L0]; AG E1; mlp.b0[L1]; disp.f1[L0]; disp.b0[L1]; AG "
                "E0; mlp.f1[L0]; "
                "comb.f1[L0]; REL U0; AG D1; pd.b0[L1]; REL U1; "
                "comb.b0[L0]; AG D1; pd.f1[L1]; AG E0; mlp.b0[L0]; disp.f1[L1]; disp.b0[L0]; AG "
                "E1; mlp.f1[L1]; "
                "comb.f1[L1]; REL U1; AG D0; pd.b0[L0]; REL U0; "
                "post.f1; pre.b0; loss.f1; loss.b1; post.b1; "
                "comb.b1[L1]; AG E1; mlp.b1[L1]; disp.b1[L1]; AG D1; pd.b1[L1]; REL U1; "
                "comb.b1[L0]; AG E0; mlp.b1[L0]; disp.b1[L0]; AG D0; pd.b1[L0]; REL U0; pre.b1");
}

TEST(Expected, TableBDelaysWeights) {
  EXPECT_EQ(Table({.delay = true}),
            std::string(kForward0) +
                "; loss.b0; pre.f1; post.b0; "
                "comb.b0[L1]; AG D0; pd.f1[L0]; AG E1; mlp.b0[L1]; disp.f1[L0]; mlp.dw0[L1]; "
                "disp.b0[L1]; AG E0; "
                "mlp.f1[L0]; comb.f1[L0]; REL U0; AG D1; pd.b0[L1]; pd.dw0[L1]; REL U1; "
                "comb.b0[L0]; AG D1; pd.f1[L1]; AG E0; mlp.b0[L0]; disp.f1[L1]; mlp.dw0[L0]; "
                "disp.b0[L0]; AG E1; "
                "mlp.f1[L1]; comb.f1[L1]; REL U1; AG D0; pd.b0[L0]; pd.dw0[L0]; REL U0; "
                "post.f1; pre.b0; loss.f1; loss.b1; post.b1; "
                "comb.b1[L1]; AG E1; mlp.b1[L1]; mlp.dw1[L1]; disp.b1[L1]; AG D1; pd.b1[L1]; "
                "pd.dw1[L1]; REL U1; "
                "comb.b1[L0]; AG E0; mlp.b1[L0]; mlp.dw1[L0]; disp.b1[L0]; AG D0; pd.b1[L0]; "
                "pd.dw1[L0]; REL U0; "
                "pre.b1");
}

TEST(Expected, TableCGathersOnce) {
  EXPECT_EQ(Table({.shards_params = false}),
            "AG Ne; pre.f0; AG D0; pd.f0[L0]; disp.f0[L0]; AG E0; mlp.f0[L0]; comb.f0[L0]; AG D1; "
            "pd.f0[L1]; "
            "disp.f0[L1]; AG E1; mlp.f0[L1]; comb.f0[L1]; AG Nh; post.f0; loss.f0; loss.b0; "
            "pre.f1; post.b0; "
            "comb.b0[L1]; pd.f1[L0]; mlp.b0[L1]; disp.f1[L0]; disp.b0[L1]; mlp.f1[L0]; "
            "comb.f1[L0]; pd.b0[L1]; "
            "comb.b0[L0]; pd.f1[L1]; mlp.b0[L0]; disp.f1[L1]; disp.b0[L0]; mlp.f1[L1]; "
            "comb.f1[L1]; pd.b0[L0]; "
            "post.f1; pre.b0; loss.f1; loss.b1; post.b1; comb.b1[L1]; mlp.b1[L1]; disp.b1[L1]; "
            "pd.b1[L1]; "
            "comb.b1[L0]; mlp.b1[L0]; disp.b1[L0]; pd.b1[L0]; pre.b1");
}

// One layer: both sides are in it. Early release takes its parameters before the forward side's
// experts.
TEST(Expected, EarlyReleaseInTheMiddleGathersAgain) {
  const std::string text = Table({.layers = 1, .early = true});
  EXPECT_NE(
      text.find("disp.b0[L0]; pd.b0[L0]; REL U0; AG E0; mlp.f1[L0]; comb.f1[L0]; REL U0; post.f1"),
      std::string::npos)
      << text;
}
TEST(Expected, TheMiddleLayerStaysUntilBackwardIsThrough) {
  const std::string text = Table({.layers = 1});
  EXPECT_NE(text.find("disp.b0[L0]; mlp.f1[L0]; comb.f1[L0]; pd.b0[L0]; REL U0; post.f1"),
            std::string::npos)
      << text;
}

TEST(Expected, WithoutOverlapMicrobatchesFollow) {
  Plan plan = PlanOf({.layers = 1, .overlap = false});
  std::string text;
  for (const Key& key : ExpectedOrder(plan)) text += Text(key) + " ";
  EXPECT_EQ(text,
            "pre.f0 pd.f0[L0] disp.f0[L0] mlp.f0[L0] comb.f0[L0] post.f0 loss.f0 loss.b0 post.b0 "
            "comb.b0[L0] "
            "mlp.b0[L0] disp.b0[L0] pd.b0[L0] pre.b0 pre.f1 pd.f1[L0] disp.f1[L0] mlp.f1[L0] "
            "comb.f1[L0] post.f1 "
            "loss.f1 loss.b1 post.b1 comb.b1[L0] mlp.b1[L0] disp.b1[L0] pd.b1[L0] pre.b1 ");
}

TEST(Expected, UnequalSidesHaveTails) {
  const std::vector<Pair> pairs = PairsOf({0, 1, 2}, {0});
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0].backward, 0);
  EXPECT_EQ(pairs[1].backward, -1);
  EXPECT_EQ(pairs[2].forward, 2);
}

// "6|1": pass 6 forward beside pass 1 backward; with 2 chunks pass 6 is microbatch 3 in chunk 0.
std::string StepsOf(int32_t rank, int32_t chunks, int32_t microbatches) {
  std::string text;
  for (const Sides& sides : InterleavedSteps(2, rank, chunks, microbatches)) {
    const auto side = [](int32_t pass) { return pass < 0 ? "" : std::to_string(pass); };
    text += (text.empty() ? "" : " ") + side(sides.forward) + "|" + side(sides.backward);
  }
  return text;
}

TEST(Interleaved, WarmUpIsOnePassLongerThanTheFirstGradientTakes) {
  EXPECT_EQ(StepsOf(0, 2, 4), "0| 2| 1| 3| 4| 6|1 5|3 7|0 |2 |5 |7 |4 |6");
  EXPECT_EQ(StepsOf(1, 2, 4), "0| 2| 1| 3|1 4|3 6|0 5|2 7|5 |7 |4 |6");
}

TEST(Interleaved, FewMicrobatchesAllGoForwardFirst) {
  EXPECT_EQ(StepsOf(0, 2, 2), "0| 2| 1| 3| |1 |3 |0 |2");
  EXPECT_EQ(StepsOf(1, 3, 2), "0| 3| 1| 4| 2| 5|2 |5 |1 |4 |0 |3");
}

// Layers of the two passes take turns, and early release moves the attention's backward here, too.
TEST(Interleaved, OrderOfACombinedStep) {
  for (const bool early : {false, true}) {
    Plan plan = PlanOf({.layers = 1, .microbatches = 2, .early = early});
    plan.layers = {{0}, {1}};  // pass 0: chunk 0; pass 1: chunk 1
    plan.steps = {{1, 0}};
    plan.has = [](const Key& key) { return key.layer >= 0 && key.side != Side::kWeights; };
    std::string text;
    for (const Key& key : ExpectedOrder(plan)) text += Text(key) + "; ";
    EXPECT_EQ(text, std::string("mtp.b0[L0]; comb.b0[L0]; pd.f1[L1]; mlp.b0[L0]; disp.f1[L1]; "
                                "disp.b0[L0]; ") +
                        (early ? "pd.b0[L0]; mlp.f1[L1]; comb.f1[L1]; "
                               : "mlp.f1[L1]; comb.f1[L1]; pd.b0[L0]; ") +
                        "mtp.f1[L1]; ");
  }
}

}  // namespace
}  // namespace shardproof::schedule
