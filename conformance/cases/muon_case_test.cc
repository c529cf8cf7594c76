// Muon's options: ids, knobs, and what is illegal.
#include <gtest/gtest.h>

#include <stdexcept>

#include "conformance/cases/illegal.h"

namespace shardproof {
namespace {

TEST(MuonCaseTest, EveryOptionIsPartOfTheId) {
  Case c;
  InstanceSpec& spec = c.instances[0];
  spec.optimizer = Optimizer::kMuon;
  spec.muon = {0.5,  true,  MuonCoefficients::kPolarExpress, 8,    MuonScale::kUnitRmsNorm,
               0.25, false, MuonPrecision::kMedium,          0.125};
  Derive(c);
  ASSERT_EQ(c.illegal, "");
  EXPECT_EQ(Id(c),
            "w8.ddp.muon.mom0p5.nesterov.coef=polar_express.ns8.scale=unit_rms_norm.extra0p25."
            "wholeqkv.prec=medium.nseps0p125");
  EXPECT_EQ(ParseId(Id(c)), c);
}

TEST(MuonCaseTest, KnobsAreSetWhereTheyDiffer) {
  const auto plain = Knobs(ParseId("w2.ddp").instances[0], 2);
  auto knobs = Knobs(ParseId("w2.ddp.muon").instances[0], 2);
  EXPECT_EQ(knobs.size(), plain.size() + 1);
  EXPECT_EQ(knobs.at("optimizer"), "muon");
  knobs = Knobs(ParseId("w2.ddp.muon.mom0p5.nesterov.coef=cans.ns6.scale=shape_scaling.extra0p2."
                        "wholeqkv.prec=medium.nseps0")
                    .instances[0],
                2);
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"muon_momentum", "0.5"},
                                          {"muon_nesterov", "1"},
                                          {"muon_coefficient_type", "cans"},
                                          {"muon_num_ns_steps", "6"},
                                          {"muon_scale_mode", "shape_scaling"},
                                          {"muon_extra_scale_factor", "0.2"},
                                          {"muon_split_qkv", "0"},
                                          {"muon_fp32_matmul_prec", "medium"},
                                          {"muon_eps", "0"}}) {
    ASSERT_EQ(knobs.count(name), 1u) << name;
    EXPECT_EQ(knobs.at(name), value) << name;
  }
}

TEST(MuonCaseTest, TrapsAreIllegalAndTheirNeighboursAreNot) {
  for (const auto& [trap, legal] : {std::pair{"w2.ddp.muon.ns6", "w2.ddp.muon.ns10"},
                                    {"w2.ddp.muon.ns1", "w2.ddp.muon.coef=simple.ns1"},
                                    {"w2.ddp.muon.coef=cubic5.ns10", "w2.ddp.muon.coef=cubic5"},
                                    {"w2.ddp.muon.coef=aol", "w2.ddp.muon.coef=cans"},
                                    {"w2.ddp.muon.mom1", "w2.ddp.muon.mom0"}}) {
    EXPECT_NE(ParseId(trap).illegal, "") << trap;
    EXPECT_EQ(ParseId(legal).illegal, "") << legal;
  }
}

TEST(MuonCaseTest, OptionsWithoutMuonCannotBeAsked) {
  EXPECT_THROW(ParseId("w2.ddp.ns6"), std::invalid_argument);
  EXPECT_THROW(ParseId("w2.ddp.adamw.nesterov"), std::invalid_argument);
  EXPECT_THROW(ParseId("w2.ddp.muon.extra-1"), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
