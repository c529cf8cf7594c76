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

TEST(MuonCaseTest, ModesOfShardsNeedShards) {
  const auto knobs =
      Knobs(ParseId("w2.ddp.tp2.etp2.split.muon.heads4.tpmode=blockwise").instances[0], 2);
  EXPECT_EQ(knobs.at("muon_tp_mode"), "blockwise");
  EXPECT_EQ(knobs.at("num_attention_heads"), "4");
  EXPECT_EQ(Knobs(ParseId("w2.ddp.split.muon").instances[0], 2).at("num_attention_heads"), "2")
      << "rows lie by head on one rank, too";
  EXPECT_EQ(Knobs(ParseId("w2.ddp.muon").instances[0], 2).count("num_attention_heads"), 0u);
  EXPECT_EQ(Knobs(ParseId("w2.ddp.split").instances[0], 2).count("num_attention_heads"), 0u);
  for (const char* id : {"w2.ddp.muon.tpmode=blockwise", "w2.ddp.split.muon.tpmode=distributed",
                         "w2.ddp.tp2.etp2.split.tpmode=blockwise",
                         "w4.ddp.tp4.etp4.split.muon.heads4.tpmode=distributed"})
    EXPECT_THROW(ParseId(id), std::invalid_argument) << id;
  EXPECT_NO_THROW(ParseId("w4.ddp.tp4.etp4.split.muon.heads4.tpmode=blockwise"));
  EXPECT_NE(ParseId("w2.ddp.tp2.etp2.split.muon.tpmode=gathered").illegal, "");
}

}  // namespace
}  // namespace shardproof
