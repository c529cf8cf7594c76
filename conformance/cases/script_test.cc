#include <gtest/gtest.h>

#include "conformance/cases/case.h"

namespace shardproof {
namespace {

std::string Expanded(const std::string& script) {
  std::string text;
  for (const ScriptCall& call : ExpandScript(script)) {
    text += call.letter;
    if (call.step >= 0) text += std::to_string(call.step);
  }
  return text;
}

TEST(ScriptTest, CreateComesFirst) { EXPECT_EQ(Expanded("tt"), "ct0t1"); }

TEST(ScriptTest, EvalStepIsTheNumberOfTrainSteps) { EXPECT_EQ(Expanded("etet"), "ce0t0e1t1"); }

TEST(ScriptTest, CreatingAgainCountsFromZero) { EXPECT_EQ(Expanded("ttrt"), "ct0t1dct0"); }

TEST(ScriptTest, LoadRestoresTheCountThatWasSaved) { EXPECT_EQ(Expanded("ttstlt"), "ct0t1st2lt2"); }

TEST(ScriptTest, LoadAfterCreateRestoresTheLatestFolder) {
  EXPECT_EQ(Expanded("tststrlt"), "ct0st1st2dclt2");
}

TEST(ScriptTest, LoadWithoutSaveIsRefused) {
  EXPECT_THROW(ExpandScript("tl"), std::invalid_argument);
}

TEST(ScriptTest, UnknownLetterIsRefused) {
  EXPECT_THROW(ExpandScript("tx"), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
