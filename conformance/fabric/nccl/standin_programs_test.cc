// Do the deadlock model's programs hang on NcclFabric over the stand-in exactly where the model
// says so?
//
// The interpreter is the simulator's own; its test is left out, since for NCCL an all_to_all_v is
// messages: a program that mixes it with messages in another order on another rank, which is wrong,
// is mixed up instead of hanging.
#define SHARDPROOF_COMMUNICATORS_AT_OPEN  // these programs come to their first uses in any order
#include "conformance/fabric/nccl/run_on_standin.h"
//
#include "conformance/fabric/sim/programs_test.cc"

namespace shardproof {
namespace {

bool MixesMessagesWithAllToAll(const json& program) {
  const std::string text = program["ranks"].dump();
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  return has("\"all_to_all ") && (has("\"send ") || has("\"recv "));
}

TEST(StandinPrograms, HangExactlyWhereTheModelSaysSo) {
  int ran = 0, hung = 0, left_out = 0;
  for (const json& program : LoadPrograms()) {
    if (!HasAllOperations(program) || program["expect"]["matching"] != "ok") continue;
    if (MixesMessagesWithAllToAll(program)) {
      ++left_out;
      continue;
    }
    ++ran;
    const json& profiles = program["expect"]["profiles"];
    const bool e0 = profiles["e0"] == "hang", eager = profiles["eager"] == "hang";
    hung += e0;
    for (const TimingPolicy policy : kTimingPolicies) {
      const bool minimal = policy == TimingPolicy::kRandom || policy == TimingPolicy::kPct;
      for (uint64_t seed = 0; seed < 2; ++seed) {
        EXPECT_EQ(RunProgram(program, With(policy, seed)).deadlock, minimal ? eager : e0)
            << program["name"] << " policy " << static_cast<int>(policy) << " seed " << seed;
      }
    }
  }
  EXPECT_GT(ran, 80);
  EXPECT_GT(hung, 15);
  EXPECT_LT(left_out, 40);
  std::printf("%d programs, %d hang, %d left out\n", ran, hung, left_out);
}

}  // namespace
}  // namespace shardproof
