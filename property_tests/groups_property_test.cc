// The closed form of the cases and the reference's own grid: two programs, the same lists and the
// same refusals.
#include <gtest/gtest.h>

#include "conformance/cases/grid.h"
#include "property_tests/generators.h"
#include "property_tests/property.h"
#include "reference/groups/training_grid.h"

namespace shardproof {
namespace {

reference::GridSizes SizesOf(const InstanceSpec& spec) {
  reference::GridSizes sizes;
  sizes.tp = spec.tp;
  sizes.cp = spec.cp;
  sizes.ep = spec.ep;
  sizes.pp = spec.pp;
  sizes.etp = spec.etp;
  sizes.order = spec.order;
  sizes.offset = spec.offset;
  sizes.span = spec.span;
  sizes.optimizer_instances = spec.outer;
  return sizes;
}

void ExpectSameLists(const InstanceSpec& spec, int32_t world) {
  auto theirs = reference::FamiliesOf(SizesOf(spec), world);
  for (const bool expert : {false, true}) theirs.push_back(reference::TwinOf(theirs, expert));
  if (spec.reshard_after_forward > 1)
    theirs.push_back(reference::ReshardOf(theirs, spec.reshard_after_forward));
  for (const GroupFamily& family : GroupFamilies(spec, world))
    RC_ASSERT(reference::FamilyNamed(theirs, family.name).lists == family.lists);
}

TEST(GroupsPropertyTest, LegalCasesHaveTheSameLists) {
  const auto space =
      std::make_shared<const CaseSpace>(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 8, 16});
  PropertyOptions options;
  options.evaluations = 500;
  EXPECT_TRUE(CheckProperty(
      "legal cases have the same lists",
      [&] {
        const GeneratedCase generated = *GenCase(space);
        ExpectSameLists(generated.spec.instances[0], generated.spec.world);
      },
      options));
}

// Axes of one to four ranks in a span that may not hold them, with an order that may not list them.
InstanceSpec AnyGridSpec() {
  InstanceSpec spec;
  spec.grid = true;
  spec.tp = *rc::gen::element(1, 2, 3, 0);
  spec.cp = *rc::gen::element(1, 1, 2);
  spec.ep = *rc::gen::element(1, 2, 4);
  spec.pp = *rc::gen::element(1, 1, 2);
  spec.etp = *rc::gen::element(1, spec.tp);
  spec.order =
      *rc::gen::element<std::string>("tp-cp-ep-dp-pp", "dp-ep-cp-tp-pp", "pp-tp-cp-ep-dp", "tp-dp",
                                     "ep-pp-dp-tp", "tp-tp-dp", "tp-cp-ep-pp", "tp-xp-dp");
  spec.span = *rc::gen::element(1, 2, 4, 6, 8, 12, 16);
  spec.offset = *rc::gen::inRange(0, 4);
  return spec;
}

TEST(GroupsPropertyTest, WhatIsNoGridForOneIsNoneForTheOther) {
  PropertyOptions options;
  options.evaluations = 3000;
  int grids = 0;
  EXPECT_TRUE(CheckProperty(
      "what is no grid for one is none for the other",
      [&] {
        const InstanceSpec spec = AnyGridSpec();
        const int32_t world = spec.offset + spec.span;
        bool refused = false;
        try {
          reference::FamiliesOf(SizesOf(spec), world);
        } catch (const reference::GridError&) {
          refused = true;
        }
        RC_ASSERT(refused == !GridProblem(spec).empty());
        if (refused) return;
        ++grids;
        ExpectSameLists(spec, world);
      },
      options));
  EXPECT_GT(grids, 100);
}

}  // namespace
}  // namespace shardproof
