#include "conformance/cases/illegal.h"

#include <gtest/gtest.h>

#include <map>

#include "conformance/cases/profiles.h"

namespace shardproof {
namespace {

TEST(IllegalTest, EveryRuleHasACase) {
  std::map<std::string, int> cases_of;
  for (const Case& c : IllegalCases()) {
    ASSERT_FALSE(c.illegal.empty()) << Id(c);
    std::string rule;
    EXPECT_EQ(IllegalText(c.instances[0], c.world, &rule), c.illegal);
    ++cases_of[rule];
  }
  for (const IllegalRule& rule : IllegalRules()) EXPECT_GE(cases_of[rule.name], 1) << rule.name;
}

TEST(IllegalTest, DefaultCaseIsLegal) { EXPECT_EQ(ParseId("w8.ddp").illegal, ""); }

TEST(IllegalTest, GridReasonsAreAllAsked) {
  std::string all;
  for (const Case& c : IllegalCases()) all += c.illegal + "\n";
  for (const char* part :
       {"not divisible by tp * cp * pp", "not divisible by etp * ep * pp", "does not list tp",
        "does not list cp", "does not list dp", "is listed twice", "there is no axis",
        "at least one rank", "pp groups of the dense and of the expert grid differ"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part;
  }
}

TEST(IllegalTest, AllWrongTwinsAreAsked) {
  std::string all;
  for (const Case& c : IllegalCases()) all += c.illegal + "\n";
  for (const char* word : {"permuted", "short", "full_span", "default_order"}) {
    EXPECT_NE(all.find(word), std::string::npos) << word;
  }
}

TEST(IllegalTest, TextNamesFieldAndValue) {
  EXPECT_EQ(ParseId("w6.zero2.n4").illegal,
            "num_optimizer_instances = 4 does not divide the 6 ranks of dp_cp");
  EXPECT_EQ(ParseId("w8.zero3.n4.ep4.experts").illegal,
            "num_optimizer_instances = 4 does not divide the 2 ranks of expt_dp");
  EXPECT_EQ(ParseId("w8.zero1.n2.hfsdp").illegal,
            "outer_strategy = optim with strategy = optim: it needs optim_grads_params");
}

}  // namespace
}  // namespace shardproof
