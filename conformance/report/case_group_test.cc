#include "conformance/report/case_group.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

TEST(CaseGroup, IsTheStrategyAndWhatStandsBesideIt) {
  EXPECT_EQ(CaseGroup("w2.ddp"), "ddp");
  EXPECT_EQ(CaseGroup("w2.zero3.k2.bf16"), "zero3");
  EXPECT_EQ(CaseGroup("w4.zero2.ep2.k3.moe4.moelayers=even.mtp.1f1b.dw.er"),
            "zero2 + experts + 1F1B");
  EXPECT_EQ(CaseGroup("w2.lw.twin.pp2.muon"), "lw + pipeline + Muon");
}

TEST(CaseGroup, OfOtherProgramsIsRecorded) {
  for (const char* id : {"", "w2", "w.zero3", "wide.zero3", "w2.mine", "a program", "<script>"})
    EXPECT_EQ(CaseGroup(id), "recorded") << id;
  EXPECT_EQ(CaseGroup("w2.zero3.moexyz.ppp"), "zero3");
}

}  // namespace
}  // namespace shardproof
