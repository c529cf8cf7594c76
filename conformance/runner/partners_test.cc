#include "conformance/runner/partners.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace shardproof {
namespace {

// Id of the partner under this requirement, empty if there is none.
std::string IdOf(const std::vector<Partner>& partners, const std::string& requirement) {
  for (const Partner& partner : partners) {
    if (partner.requirement == requirement) return Id(partner.spec);
  }
  return "";
}

TEST(PartnersTest, OverlapIsAlwaysRunAgainWithoutIt) {
  for (const char* id : {"w4.zero3.ep2.k2.moe4.1f1b", "w4.zero3.ep2.k2.moe4.1f1b.dw",
                         "w4.zero3.ep2.k2.moe4.1f1b.dw.er", "w4.zero3.ep2.k2.moe4.1f1b.hp",
                         "w4.zero3.ep2.k2.moe4.1f1b.er"}) {
    const std::vector<Partner> partners = PartnersToRun(ParseId(id));
    EXPECT_EQ(IdOf(partners, "EP-30"), "w4.zero3.ep2.k2.moe4") << id;
    EXPECT_EQ(partners.size(), 2u) << id;  // and one that the id picks
  }
}

TEST(PartnersTest, OthersHaveOnePartner) {
  for (const char* id : {"w4.zero3", "w4.zero3.ep2.k2.moe4", "w4.zero3.twin.grid.pf0.recompute"}) {
    const std::vector<Partner> partners = PartnersToRun(ParseId(id));
    EXPECT_EQ(partners.size(), 1u) << id;
    EXPECT_EQ(IdOf(PartnersOf(ParseId(id)), "EP-30"), "") << id;
  }
}

TEST(PartnersTest, EvaluationsAreAlwaysLeftOutOnce) {
  const std::vector<Partner> partners = PartnersToRun(ParseId("w4.zero2.adamw.do=setsltrlt"));
  EXPECT_EQ(IdOf(partners, "FS-13"), "w4.zero2.adamw.do=stsltrlt");
  EXPECT_EQ(partners.size(), 2u);  // and one that the id picks
  EXPECT_EQ(IdOf(PartnersOf(ParseId("w4.zero3.do=ee")), "FS-13"), "") << "nothing is trained";
}

TEST(PartnersTest, PartsOfAScheduleHaveTheirOwn) {
  const std::vector<Partner> partners =
      PartnersOf(ParseId("w4.zero3.ep2.k2.moe4.1f1b.dw.ls3.recompute=norm"));
  EXPECT_EQ(IdOf(partners, "EP-31"), "w4.zero3.ep2.k2.moe4.1f1b.ls3.recompute=norm");
  EXPECT_EQ(IdOf(partners, "EP-32"), "w4.zero3.ep2.k2.moe4.1f1b.dw.recompute=norm");
}

TEST(PartnersTest, EveryPartnerIsLegalAndHasTheSameModel) {
  const Case c = ParseId("w8.zero3.twin.grid.ep2.k2.pf0.moe4.1f1b.dw.er.ls3.recompute=norm");
  const std::vector<Partner> partners = PartnersOf(c);
  EXPECT_GE(partners.size(), 9u);
  for (const Partner& partner : partners) {
    EXPECT_EQ(partner.spec.illegal, "");
    EXPECT_EQ(partner.spec.instances[0].model, c.instances[0].model) << partner.why;
  }
}

std::set<std::string> IdsOf(const std::vector<Partner>& partners) {
  std::set<std::string> ids;
  for (const Partner& partner : partners) ids.insert(Id(partner.spec));
  return ids;
}

TEST(PartnersTest, LayerWiseEnginesAreRunWithEachOtherWayToGather) {
  EXPECT_EQ(IdsOf(PartnersOf(ParseId("w4.lw.ogr.opg.bs300"))),
            (std::set<std::string>{"w4.lw.ogr.opg.bs300", "w4.lw.ogr.bs300", "w4.ddp.ogr.opg.bs300",
                                   "w4.lw.ogr.opg.bs300.bcast", "w4.lw.ogr.opg.bs300.gradbuf",
                                   "w4.lw.ogr.opg.bs300.aligned", "w4.lw.ogr.opg"}));
  EXPECT_EQ(IdsOf(PartnersOf(ParseId("w4.lw.gradbuf"))),
            (std::set<std::string>{"w4.lw.gradbuf", "w4.ddp", "w4.lw.bcast.gradbuf", "w4.lw",
                                   "w4.lw.aligned", "w4.lw.bs300.gradbuf"}));
}

TEST(PartnersTest, EachWayToGatherHasItsRequirement) {
  std::map<std::string, std::string> requirement_of;
  for (const Partner& partner : PartnersOf(ParseId("w4.lw.ogr.opg.twin")))
    requirement_of[Id(partner.spec)] = partner.requirement;
  EXPECT_EQ(requirement_of["w4.lw.twin.ogr"], "LW-20");
  EXPECT_EQ(requirement_of["w4.lw.twin.ogr.opg.bcast"], "LW-20");
  EXPECT_EQ(requirement_of["w4.lw.twin.ogr.opg.gradbuf"], "LW-20");
  EXPECT_EQ(requirement_of["w4.lw.twin.ogr.opg.aligned"], "LW-20");
  EXPECT_EQ(requirement_of["w4.lw.twin.ogr.opg.bs300"], "LW-09");
  EXPECT_EQ(requirement_of["w4.ddp.twin.ogr.opg"], "FS-41");
  EXPECT_EQ(requirement_of["w4.lw.ogr.opg"], "PG-08");
}

TEST(PartnersTest, EachTransportIsComparedWithAnother) {
  for (const auto& [id, other] : {std::pair{"w4.lw", "w4.lw.bcast"},
                                  {"w4.lw.bcast", "w4.lw.padded"},
                                  {"w4.lw.padded", "w4.lw"},
                                  {"w4.lw.gradbuf", "w4.lw.bcast.gradbuf"},
                                  {"w4.lw.bcast.gradbuf", "w4.lw.gradbuf"}}) {
    EXPECT_TRUE(IdsOf(PartnersOf(ParseId(id))).contains(other)) << id;
  }
}

TEST(PartnersTest, EqualShardsPaddingAndSmallGradientsHaveFewerWays) {
  EXPECT_EQ(IdsOf(PartnersOf(ParseId("w4.lw.padded"))),
            (std::set<std::string>{"w4.lw.padded", "w4.ddp", "w4.lw", "w4.lw.aligned",
                                   "w4.lw.bs300.padded"}));
  EXPECT_EQ(IdsOf(PartnersOf(ParseId("w4.lw.aligned"))),
            (std::set<std::string>{"w4.lw.aligned", "w4.ddp", "w4.lw", "w4.lw.bs300.aligned"}));
  EXPECT_EQ(IdsOf(PartnersOf(ParseId("w4.lw.acc16.bcast"))),
            (std::set<std::string>{"w4.lw.acc16.bcast", "w4.ddp.acc16", "w4.lw.acc16.padded",
                                   "w4.lw.acc16.aligned", "w4.lw.acc16.bs300.bcast"}));
}

TEST(PartnersTest, GathersDuringTheForwardAreAlwaysComparedWithThoseBefore) {
  for (const char* id :
       {"w8.lw.ogr.opg", "w3.lw.ogr.opg.muon.bcast", "w8.lw.twin.ep2.k2.ogr.opg.moe4.aligned"}) {
    const std::vector<Partner> partners = PartnersToRun(ParseId(id));
    ASSERT_EQ(partners.size(), 2u) << id;  // and one that the id picks
    EXPECT_EQ(partners[0].requirement, "LW-20");
    EXPECT_FALSE(partners[0].spec.instances[0].overlap_param_gather) << id;
    EXPECT_TRUE(partners[0].spec.instances[0].overlap_grad_reduce) << id;
  }
  EXPECT_EQ(PartnersToRun(ParseId("w8.lw.ogr")).size(), 1u);
  EXPECT_EQ(PartnersToRun(ParseId("w8.ddp.ogr.opg")).size(), 1u);
}

TEST(PartnersTest, IllegalCasesAndSeveralEnginesHaveNone) {
  EXPECT_TRUE(PartnersToRun(ParseId("w4.zero3.moe4.1f1b")).empty());
  EXPECT_TRUE(PartnersToRun(ParseId("w4.zero3.name=a+zero3.name=b")).empty());
}

}  // namespace
}  // namespace shardproof
