// The cases' own bound (bounds.h) is no weaker than the model's, so that every case that is drawn
// has a model.
#include <gtest/gtest.h>

#include "conformance/cases/profiles.h"
#include "conformance/cases/schedule_space.h"
#include "conformance/cases/space.h"
#include "conformance/model/model.h"

namespace shardproof {
namespace {

void ExpectModels(const Case& c) {
  for (const InstanceSpec& spec : c.instances) {
    EXPECT_NO_THROW(Model(spec.model, TokensPerStep(spec))) << Id(c);
  }
}

TEST(ModelOfCaseTest, WrittenCasesHaveModels) {
  Spaces spaces;
  for (const std::vector<Case>& cases :
       {Profile("smoke", "sim", spaces), NamedCases(), SharedWorldCases(), IllegalCases()}) {
    for (const Case& c : cases) ExpectModels(c);
  }
}

TEST(ModelOfCaseTest, WrittenCasesOfSchedulesHaveModels) {
  for (const std::vector<Case>& cases :
       {NamedScheduleCases(), FurtherScheduleCases(), PipelineCases(), CrossCases()}) {
    for (const Case& c : cases) ExpectModels(c);
  }
}

TEST(ModelOfCaseTest, RandomCasesOfSchedulesHaveModels) {
  Spaces spaces;
  const ScheduleSpace& space = ScheduleSpaceOf("sim", spaces);
  for (uint64_t seed = 0; seed < 500; ++seed)
    ExpectModels(space.Make(RandomRow(space.problem(), seed), 1));
}

TEST(ModelOfCaseTest, CasesOfLayerWiseEnginesHaveModels) {
  for (const Case& c : NamedLayerWiseCases()) ExpectModels(c);
  Spaces spaces;
  const LayerWiseSpace& space = LayerWiseSpaceOf("sim", spaces);
  for (uint64_t seed = 0; seed < 500; ++seed)
    ExpectModels(space.Make(RandomRow(space.problem(), seed), 1));
}

TEST(ModelOfCaseTest, RandomCasesHaveModels) {
  const CaseSpace space(SpaceWorlds("sim"));
  for (uint64_t seed = 0; seed < 500; ++seed)
    ExpectModels(space.Make(RandomRow(space.problem(), seed), 1));
}

}  // namespace
}  // namespace shardproof
