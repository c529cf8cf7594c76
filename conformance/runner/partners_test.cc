#include "conformance/runner/partners.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  for (const char* id : {"w4.zero3.ep2.k2.moe4.1f1b", "w4.zero3.ep2.k2.moe4.1f1b.dw", "w4.zero3.ep2.k2.moe4.1f1b.dw.er",
                         "w4.zero3.ep2.k2.moe4.1f1b.hp", "w4.zero3.ep2.k2.moe4.1f1b.er"}) {
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

TEST(PartnersTest, PartsOfAScheduleHaveTheirOwn) {
  const std::vector<Partner> partners = PartnersOf(ParseId("w4.zero3.ep2.k2.moe4.1f1b.dw.ls3.recompute=norm"));
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

TEST(PartnersTest, IllegalCasesAndSeveralEnginesHaveNone) {
  EXPECT_TRUE(PartnersToRun(ParseId("w4.zero3.moe4.1f1b")).empty());
  EXPECT_TRUE(PartnersToRun(ParseId("w4.zero3.name=a+zero3.name=b")).empty());
}

}  // namespace
}  // namespace shardproof
