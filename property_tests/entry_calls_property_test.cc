// A state machine of an engine's life: train, evaluate, save, load, destroy and create again, in
// any order that makes sense. Whatever the order, results are those of the oracle.
#include <gtest/gtest.h>

#include "property_tests/generators.h"
#include "property_tests/property.h"
#include "property_tests/sim_judge.h"

namespace shardproof {
namespace {

TEST(EntryCallsPropertyTest, AnyOrderOfCallsConforms) {
  SimJudge judge;
  PropertyOptions options;
  options.evaluations = 40;
  EXPECT_TRUE(CheckProperty(
      "any order of entry calls conforms",
      [&] {
        const std::string base = *rc::gen::element<std::string>(
            "w2.ddp", "w3.zero1.adamw", "w4.zero2.n2.k2", "w4.zero3.twin.adamw",
            "w4.zero3.n2.hfsdp.adamw", "w4.zero3.ep2.experts.adamw",
            "w4.lw.ogr.opg.bs300.muon.lr0p0625", "w3.lw.ogr.opg.adamw.lr0p0625.aligned");
        const std::string script = *GenScript(10);
        RC_PRE(!script.empty());
        const std::string complaint =
            judge.Complaint(ParseId(base + ".do=" + script), TimingPolicy::kRandom, 1);
        if (!complaint.empty()) RC_FAIL(complaint);
      },
      options));
}

}  // namespace
}  // namespace shardproof
