// Which of the cases are chosen?
#include "conformance/runner/chosen.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace shardproof {
namespace {

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* id : {"w2.ddp", "w2.zero3", "w2.zero3.k2", "w4.zero3", "w2.lw"})
    cases.push_back(ParseId(id));
  return cases;
}

std::vector<std::string> Chosen(const Options& options, std::string* fact = nullptr) {
  std::vector<Case> cases = Cases();
  const std::string line = KeepChosen(options, &cases);
  if (fact != nullptr) *fact = line;
  std::vector<std::string> ids;
  for (const Case& c : cases) ids.push_back(Id(c));
  return ids;
}

using Ids = std::vector<std::string>;

TEST(KeepChosen, TakesGlobs) {
  Options options;
  std::string fact;
  EXPECT_EQ(Chosen(options, &fact).size(), 5u);
  EXPECT_EQ(fact, "");
  options.select = {"*.zero3*", "w2.lw"};
  options.exclude = {"w4.*"};
  EXPECT_EQ(Chosen(options, &fact), (Ids{"w2.zero3", "w2.zero3.k2", "w2.lw"}));
  EXPECT_EQ(fact, "chosen: 3 of 5 cases (--select *.zero3* --select w2.lw --exclude w4.*)");
  options.select = {"w3.*"};
  EXPECT_THROW(Chosen(options), std::invalid_argument);
}

TEST(KeepChosen, ShardsHaveEachCaseOnce) {
  std::multiset<std::string> all;
  for (const char* shard : {"1/3", "2/3", "3/3"}) {
    Options options;
    options.shard = shard;
    for (const std::string& id : Chosen(options)) all.insert(id);
  }
  std::multiset<std::string> expected;
  for (const Case& c : Cases()) expected.insert(Id(c));
  EXPECT_EQ(all, expected);
}

TEST(KeepChosen, RefusesWhatIsNoShard) {
  for (const char* shard : {"0/3", "4/3", "1", "1/", "a/b", "-1/3", "1/3/3"}) {
    Options options;
    options.shard = shard;
    EXPECT_THROW(Chosen(options), std::invalid_argument) << shard;
  }
}

TEST(KeepChosen, AShardMayHaveNoCase) {
  Options options;
  options.shard = "6/9";
  EXPECT_EQ(Chosen(options), std::vector<std::string>());
}

std::string Refusal(const std::string& id) {
  try {
    CaseOfId(id);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(CaseOfId, SuggestsWhatWasMeant) {
  EXPECT_EQ(Refusal("w2.zero3"), "");
  EXPECT_NE(Refusal("w2.zeor3").find("Did you mean w2.zero3?"), std::string::npos);
  EXPECT_NE(Refusal("w2.zero3.recompte").find("Did you mean w2.zero3.recompute?"),
            std::string::npos);
  EXPECT_EQ(Refusal("w2.nonsense").find("Did you mean"), std::string::npos);
  EXPECT_NE(Refusal("w2.nonsense"), "");
  EXPECT_EQ(Refusal("w8.zero3.grid.tp3").find("Did you mean"), std::string::npos);
}

// What the rules of options let pass, and no model can be made of.
TEST(CaseOfId, NamesWhatNoModelCanHave) {
  EXPECT_EQ(Refusal("w2.ddp.heads3"),
            "case id 'w2.ddp.heads3': model width = 16 is no multiple of heads = 3");
  const std::string sum = Refusal("w2.zero3.vocab5000");
  EXPECT_NE(sum.find("loss softmax over vocab: 5000 products"), std::string::npos) << sum;
}

}  // namespace
}  // namespace shardproof
