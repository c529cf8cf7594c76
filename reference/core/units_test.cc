#include "reference/core/units.h"

#include <gtest/gtest.h>

namespace reference {
namespace {

// root -> embedding, layer 0 -> mlp, layer 1 -> mlp, head
class UnitsTest : public testing::Test {
 protected:
  UnitsTest() {
    AddModule(-1, "Model"), AddModule(0, "Embedding"), AddModule(0, "TransformerLayer"),
        AddModule(2, "Mlp");
    AddModule(0, "TransformerLayer"), AddModule(4, "Mlp"), AddModule(0, "Head");
    AddParam("embedding.weight", 1, 32, 16);
    AddParam("layers.0.norm", 2, 16, 0);
    AddParam("layers.0.mlp.up", 3, 24, 16);
    AddParam("layers.0.mlp.down", 3, 16, 24);
    AddParam("layers.1.norm", 4, 16, 0);
    AddParam("layers.1.mlp.up", 5, 24, 16);
    AddParam("head.weight", 6, 32, 16);
  }
  void AddModule(int32_t parent, const char* type) { modules_.push_back({parent, type, type}); }
  void AddParam(const char* name, int32_t module, int64_t rows, int64_t columns) {
    spf_param param{};
    param.name = name, param.module = module, param.dtype = SPF_F32, param.tp_dim = -1;
    param.n_dim = columns == 0 ? 1 : 2;
    param.shape[0] = rows, param.shape[1] = columns;
    param.numel = columns == 0 ? rows : rows * columns;
    params_.push_back(param);
  }
  ModelPlan Plan(const std::vector<std::string>& types, int64_t bucket_size = 0,
                 const std::vector<const spf_program*>& programs = {}) {
    spf_model model{};
    model.n_modules = static_cast<int32_t>(modules_.size()), model.modules = modules_.data();
    model.n_params = static_cast<int32_t>(params_.size()), model.params = params_.data();
    return PlanModel(model, types, bucket_size, programs);
  }
  static std::vector<int32_t> ParamsOf(const BucketPlan& bucket) {
    std::vector<int32_t> ids;
    for (const ParamShape& param : bucket.params) ids.push_back(param.param);
    return ids;
  }
  std::vector<spf_module> modules_;
  std::vector<spf_param> params_;
};

TEST_F(UnitsTest, BucketsInOrderOfFirstAppearance) {
  const ModelPlan plan = Plan({"TransformerLayer"});
  EXPECT_EQ(plan.unit_modules, (std::vector<int32_t>{2, 4}));
  ASSERT_EQ(plan.buckets.size(), 4U);
  EXPECT_EQ(ParamsOf(plan.buckets[0]), (std::vector<int32_t>{0, 6}));  // outside units
  EXPECT_EQ(ParamsOf(plan.buckets[1]), (std::vector<int32_t>{1, 2}));  // layer 0, rows of 16 and 1
  EXPECT_EQ(ParamsOf(plan.buckets[2]), (std::vector<int32_t>{3}));     // layer 0, rows of 24
  EXPECT_EQ(ParamsOf(plan.buckets[3]), (std::vector<int32_t>{4, 5}));
  ASSERT_EQ(plan.groups.size(), 3U);
  EXPECT_EQ(plan.groups[1].buckets, (std::vector<int32_t>{1, 2})) << "one group operation per unit";
}

TEST_F(UnitsTest, TheLargestSetOfUnitsThatAreAlikeSharesDoubleBuffers) {
  EXPECT_EQ(Plan({"TransformerLayer"}).unit_alike, (std::vector<bool>{true, false}))
      << "one of each: the first";
  AddParam("layers.1.mlp.down", 5, 16, 24);
  EXPECT_EQ(Plan({"TransformerLayer"}).unit_alike, (std::vector<bool>{true, true}));
  EXPECT_EQ(Plan({"Embedding", "TransformerLayer", "Head"}).unit_alike,
            (std::vector<bool>{true, false, false, true}))
      << "two of each: the first";
  AddParam("layers.1.bias", 4, 1, 0);
  EXPECT_EQ(Plan({"TransformerLayer"}).unit_alike, (std::vector<bool>{true, false}));
  AddModule(0, "Empty"), AddModule(0, "Empty");
  EXPECT_EQ(Plan({"TransformerLayer", "Empty"}).unit_alike,
            (std::vector<bool>{true, false, false, false}))
      << "units without parameters are not alike";
  EXPECT_TRUE(Plan({}).unit_alike.empty());
}

TEST_F(UnitsTest, OutermostModuleOfTheTypesIsTheUnit) {
  EXPECT_EQ(Plan({"Mlp", "TransformerLayer"}).unit_modules, (std::vector<int32_t>{2, 4}));
}

TEST_F(UnitsTest, WithoutUnitsEverythingIsOutside) {
  const ModelPlan plan = Plan({});
  EXPECT_EQ(plan.units(), 0);
  for (const BucketPlan& bucket : plan.buckets) EXPECT_EQ(bucket.unit, kNoUnit);
}

TEST_F(UnitsTest, FrozenExpertAndOtherDtypesHaveBucketsOfTheirOwn) {
  params_[2].flags = SPF_PARAM_FROZEN;
  params_[5].flags = SPF_PARAM_EXPERT;
  params_[6].dtype = SPF_BF16;
  const ModelPlan plan = Plan({"TransformerLayer"});
  for (const BucketPlan& bucket : plan.buckets) {
    for (const ParamShape& shape : bucket.params) {
      const spf_param& param = params_[static_cast<size_t>(shape.param)];
      EXPECT_EQ(bucket.trainable, (param.flags & SPF_PARAM_FROZEN) == 0);
      EXPECT_EQ(bucket.expert, (param.flags & SPF_PARAM_EXPERT) != 0);
      EXPECT_EQ(bucket.dtype, param.dtype);
    }
  }
  EXPECT_EQ(plan.unit_groups[1].size(), 2U)
      << "dense and expert parameters of a unit never share a collective";
}

TEST_F(UnitsTest, BackwardEndsAtTheFirstTrainableParameter) {
  EXPECT_EQ(Plan({"TransformerLayer"}).unit_in_backward, (std::vector<bool>{true, true}));
  params_[0].flags = SPF_PARAM_FROZEN;
  EXPECT_EQ(Plan({"Embedding", "TransformerLayer"}).unit_in_backward,
            (std::vector<bool>{false, true, true}));
  for (int p : {1, 2, 3}) params_[static_cast<size_t>(p)].flags = SPF_PARAM_FROZEN;
  EXPECT_EQ(Plan({"Embedding", "TransformerLayer"}).unit_in_backward,
            (std::vector<bool>{false, false, true}));
}

TEST_F(UnitsTest, ExpertnessIsAFlagAndNotAName) {
  params_[2].name = "layers.0.experts.up";
  for (const BucketPlan& bucket : Plan({"TransformerLayer"}).buckets) EXPECT_FALSE(bucket.expert);
}

TEST_F(UnitsTest, BucketsOutsideUnitsAreCutAtTheirSize) {
  const ModelPlan plan = Plan({"TransformerLayer"}, 512);
  EXPECT_EQ(plan.root_groups.size(), 2U);
  EXPECT_EQ(Plan({"TransformerLayer"}, 513).root_groups.size(), 1U);
  EXPECT_EQ(plan.unit_groups[0].size(), 1U) << "units are never cut";
}

// Modules 1 (embedding), 2, 4 (layers) and 6 (head), in the order in which their nodes run.
TEST_F(UnitsTest, AUnitThatComesAgainHasASecondPlace) {
  spf_use use{};
  use.table = SPF_IN_GRAD;
  const auto reentries = [&](const std::vector<int32_t>& modules, bool backward = true) {
    std::vector<spf_node> nodes(modules.size());
    for (size_t i = 0; i < modules.size(); ++i) {
      nodes[i].module = modules[i];
      if (backward) nodes[i].uses[SPF_BWD] = {1, &use};
    }
    const spf_program program{sizeof(spf_program), static_cast<int32_t>(nodes.size()),
                              nodes.data()};
    return Plan({"Embedding", "TransformerLayer"}, 0, {&program, &program}).reentries;
  };
  EXPECT_EQ(reentries({1, 2, 1, 4, 6}), (std::vector<Reentry>{{0, 4}})) << "before layer 1, once";
  EXPECT_EQ(reentries({1, 2, 4, 1, 6}), (std::vector<Reentry>{{0, 6}}));
  EXPECT_EQ(reentries({1, 2, 4, 1, 6}, false), (std::vector<Reentry>{{0, 6, false}}));
  EXPECT_TRUE(reentries({1, 2, 4, 6}).empty());
  EXPECT_TRUE(reentries({1, 2, 4, 2, 4, 6}).empty()) << "layer 1 was there already";
}

TEST_F(UnitsTest, WeightThatAUnitSharesWithOthersIsKeptOutside) {
  const spf_use in_layer{SPF_IN_PARAM, SPF_READ, 0, 0};
  spf_node node{};
  node.module = 2, node.uses[SPF_FWD] = {1, &in_layer};
  const spf_program program{sizeof(spf_program), 1, &node};
  const ModelPlan plan = Plan({"TransformerLayer", "Embedding"}, 0, {&program});
  EXPECT_EQ(plan.buckets[static_cast<size_t>(plan.param_bucket[0])].unit, kNoUnit);
  EXPECT_EQ(plan.buckets[static_cast<size_t>(plan.param_bucket[1])].unit, 1);
}

TEST_F(UnitsTest, CopiesForBackwardAreGroupsOfTheSameBuckets) {
  ModelPlan plan = Plan({"TransformerLayer"});
  const int32_t groups = Length(plan.groups), first = At(plan.unit_groups, 0).front();
  const int32_t of_unit = At(plan.buckets, At(plan.groups, first).buckets.front()).params[0].param;
  EXPECT_EQ(plan.GroupReadOf(of_unit, true), first);
  AddBackwardCopies(plan);
  EXPECT_EQ(Length(plan.groups), groups + 2) << "one for each unit, none outside";
  EXPECT_EQ(At(plan.groups, groups).buckets, At(plan.groups, first).buckets);
  EXPECT_TRUE(At(plan.groups, groups).for_backward);
  EXPECT_EQ(plan.GroupReadOf(of_unit, false), first);
  EXPECT_EQ(plan.GroupReadOf(of_unit, true), groups);
}

}  // namespace
}  // namespace reference
