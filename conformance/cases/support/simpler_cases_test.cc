#include "conformance/cases/support/simpler_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace shardproof {
namespace {

std::vector<std::string> Simpler(const std::string& id) {
  std::vector<std::string> ids;
  for (const Case& c : SimplerCases(ParseId(id))) ids.push_back(Id(c));
  return ids;
}

bool Has(const std::vector<std::string>& ids, const std::string& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

TEST(SimplerCasesTest, LeaveOutOneTokenALetterOrRanks) {
  const std::vector<std::string> ids = Simpler("w3.zero3.twin.k2.do=tet");
  for (const char* id :
       {"w3.zero3.k2.do=tet", "w3.zero3.twin.do=tet", "w3.zero3.twin.k2", "w3.zero3.twin.k2.do=et",
        "w3.zero3.twin.k2.do=tt", "w2.zero3.twin.k2.do=tet", "w1.zero3.twin.k2.do=tet"})
    EXPECT_TRUE(Has(ids, id)) << id;
  EXPECT_FALSE(Has(ids, "w3.zero3.twin.k2.do=tet")) << "the case itself";
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end(),
                             [](const auto& a, const auto& b) { return a.size() < b.size(); }));
  EXPECT_TRUE(Simpler("w1.ddp").empty());
}

TEST(SimplerCasesTest, StayAskableAndAsLegal) {
  for (const char* id :
       {"w4.zero3.ep2.moe4.k2.1f1b.dw", "w8.zero3.n2.hfsdp.twin", "w4.zero3.hfsdp"}) {
    const Case c = ParseId(id);
    for (const Case& one : SimplerCases(c)) EXPECT_EQ(one.illegal.empty(), c.illegal.empty());
  }
  EXPECT_FALSE(Has(Simpler("w8.zero3.n2.hfsdp"), "w8.zero3.hfsdp")) << "that is illegal";
}

TEST(SimplerCasesTest, OfEachLegAndInstance) {
  const std::vector<std::string> legs = Simpler("w2.zero3.do=tts.killed.then.w2.zero3.twin.do=let");
  EXPECT_TRUE(Has(legs, "w2.zero3.do=ts.killed.then.w2.zero3.twin.do=let"));
  EXPECT_TRUE(Has(legs, "w2.zero3.do=tts.killed.then.w2.zero3.do=let"));
  EXPECT_TRUE(Has(legs, "w2.zero3.do=tts.then.w2.zero3.twin.do=let"));
  const std::vector<std::string> both = Simpler("w4.zero3.name=a+zero3.twin.name=b");
  EXPECT_TRUE(Has(both, "w4.zero3.name=a+zero3.name=b"));
}

}  // namespace
}  // namespace shardproof
