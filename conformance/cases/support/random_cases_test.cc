// Which legal cases do seeds draw?
#include "conformance/cases/support/random_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/cases/support/fitted_profile.h"

namespace shardproof {
namespace {

class RandomCasesTest : public testing::Test {
 protected:
  Spaces kept_;
  const std::vector<CaseFactors> spaces_ = FactorsUpTo(4, kept_);
};

TEST_F(RandomCasesTest, DrawsAddValuesOfOtherSpacesWhereThatIsLegal) {
  const std::vector<DrawFrom> from = WhatToDrawFrom(spaces_, AllOf(spaces_), 4);
  size_t with = 0, two = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    DrawnCase drawn = Draw(from, seed);
    const Case c = MakeCase(drawn);
    EXPECT_TRUE(c.illegal.empty()) << Id(c);
    EXPECT_EQ(ParseId(Id(c)), c);
    with += !drawn.besides.empty();
    two += drawn.besides.size() == 2;
    EXPECT_EQ(SpaceOf(c), drawn.from->space.name) << Id(c);
    if (drawn.besides.empty()) continue;
    EXPECT_EQ(seed / from.size() % 4 / 2, 1u) << seed;
    drawn.script.clear();
    DrawnCase without = drawn;
    without.besides.clear();
    const std::string id = Id(MakeCase(without)), longer = Id(MakeCase(drawn));
    EXPECT_NE(id, longer);
    EXPECT_LE(std::ranges::count(id, '.'), std::ranges::count(longer, '.')) << longer;
    for (const ValueBesides& one : drawn.besides) {
      const Factor& factor = one.from->space.problem->factors[static_cast<size_t>(one.factor)];
      EXPECT_FALSE(IsOfTheWorld(factor)) << factor.name;
    }
    const std::vector<DrawnCase> simpler = Simpler(drawn);
    EXPECT_TRUE(std::ranges::any_of(simpler, [&](const DrawnCase& one) {
      return one.besides.empty() && one.row == drawn.row;
    })) << Id(c);
  }
  EXPECT_GT(with, 120u);  // of 200
  EXPECT_GT(two, 60u);
}

TEST_F(RandomCasesTest, WhatIsNotTakenIsNotAdded) {
  using Has = bool (*)(const InstanceSpec&);
  const auto count = [&](const Supported& supported, const std::string& space, Has has) {
    const std::vector<DrawFrom> from = WhatToDrawFrom(spaces_, supported, 4);
    size_t some = 0;
    for (uint64_t seed = 1; seed <= 400; ++seed) {
      const Case c = MakeCase(Draw(from, seed));
      EXPECT_TRUE(Fits(spaces_, supported, c)) << Id(c);
      some += SpaceOf(c) == space && has(c.instances.front());
    }
    return some;
  };
  // Weight decay is of other spaces than experts.
  const Has decays = [](const InstanceSpec& spec) { return spec.weight_decay > 0; };
  Supported supported = AllOf(spaces_);
  EXPECT_GT(count(supported, "experts", decays), 0u);
  supported["strategies"].values["weight_decay"] = {"0"};
  supported["layer_wise"].values["weight_decay"] = {"0"};
  EXPECT_EQ(count(supported, "experts", decays), 0u);
  // Experts have "recompute layers", which is recompute = 1 in strategies.
  const Has recomputes = [](const InstanceSpec& spec) { return spec.recompute; };
  supported = AllOf(spaces_);
  EXPECT_GT(count(supported, "strategies", recomputes), 0u);
  supported["strategies"].values["recompute"] = {"0"};
  EXPECT_EQ(count(supported, "strategies", recomputes), 0u);
}

TEST_F(RandomCasesTest, HalfOfTheCallsOfDrawnScriptsTrain) {
  const std::vector<DrawFrom> from = WhatToDrawFrom(spaces_, AllOf(spaces_), 4);
  size_t drawn = 0, calls = 0, train = 0;
  std::set<char> others;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const std::string script = Draw(from, seed).script;
    if (script.empty()) continue;
    EXPECT_GE(script.size(), 3u);
    EXPECT_LE(script.size(), 6u);
    ++drawn;
    calls += script.size();
    train += static_cast<size_t>(std::ranges::count(script, 't'));
    for (const char call : script) {
      if (call != 't') others.insert(call);
    }
  }
  EXPECT_EQ(drawn, 200u);
  EXPECT_GT(train * 10, calls * 4);
  EXPECT_LT(train * 10, calls * 7);
  EXPECT_EQ(others, (std::set<char>{'e', 'l', 'r', 's'}));
}

// A number that is none shows something where a step is skipped for it; with check_for_nan_in_grad
// the run only ends.
TEST_F(RandomCasesTest, StepsThatMayBeSkippedMeetANumberThatIsNone) {
  const std::vector<DrawFrom> from = WhatToDrawFrom(spaces_, AllOf(spaces_), 4);
  size_t some = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    DrawnCase drawn = Draw(from, seed);
    const Case c = MakeCase(drawn);
    const InstanceSpec& spec = c.instances.front();
    if (!spec.model.nan_loss) continue;
    ++some;
    EXPECT_GT(spec.skip_norm, 0) << Id(c);
    EXPECT_FALSE(MustFail(spec)) << Id(c);
    drawn.nan_loss = false;
    const std::string id = Id(MakeCase(drawn));
    EXPECT_NE(id, Id(c));
    drawn.nan_loss = true;
    EXPECT_TRUE(std::ranges::any_of(Simpler(drawn), [&](const DrawnCase& one) {
      return Id(MakeCase(one)) == id;
    })) << Id(c);
  }
  EXPECT_GT(some, 10u);
}

}  // namespace
}  // namespace shardproof
