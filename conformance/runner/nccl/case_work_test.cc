#include "conformance/runner/nccl/case_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "conformance/runner/nccl/environment.h"
#include "conformance/runner/workers/worker.h"

namespace shardproof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Cause = MachineEnd::Cause;

RankAnswer Ended(RankEnd::Kind kind, const std::string& detail = "", bool waited = false) {
  RankAnswer answer;
  answer.end.kind = kind;
  answer.end.detail = detail;
  answer.waited = waited;
  return answer;
}
RankAnswer After(Cause cause, EngineOutcome::Kind outcome = EngineOutcome::Kind::kOk) {
  RankOutput output;
  output.outcome.kind = outcome;
  MachineEnd end;
  end.cause = cause;
  end.reason = "the reason";
  end.pending = "first\nsecond";
  end.reusable = false;
  end.mismatches = {"lists differ"};
  return AnswerWith(output, end);
}

TEST(RankAnswer, TravelsWhole) {
  RankAnswer answer = Ended(RankEnd::kHung, "detail\nof two lines", true);
  answer.end.returned = true;
  answer.end.blob = std::string("\0blob", 5);
  answer.reusable = false;
  answer.mismatches = {"one", ""};
  const RankAnswer back = AnswerOf(FieldsOf(answer));
  EXPECT_EQ(back.end.kind, RankEnd::kHung);
  EXPECT_EQ(back.end.detail, answer.end.detail);
  EXPECT_TRUE(back.end.returned);
  EXPECT_EQ(back.end.blob, answer.end.blob);
  EXPECT_TRUE(back.waited);
  EXPECT_FALSE(back.reusable);
  EXPECT_THAT(back.mismatches, ElementsAre("one", ""));
  EXPECT_THROW(AnswerOf({"0", ""}), std::runtime_error);
}

TEST(AnswerWith, AProgramThatCameToItsEnd) {
  const RankAnswer answer = AnswerWith({}, {});
  EXPECT_EQ(answer.end.kind, RankEnd::kReturned);
  EXPECT_TRUE(answer.end.returned);
  EXPECT_TRUE(answer.reusable);
}
TEST(AnswerWith, AnEngineThatFailedHasSaidSoItself) {
  const RankAnswer answer = After(Cause::kItself, EngineOutcome::Kind::kFailed);
  EXPECT_EQ(answer.end.kind, RankEnd::kReturned);
  EXPECT_FALSE(answer.reusable);
  EXPECT_THAT(answer.mismatches, ElementsAre("lists differ"));
}
TEST(AnswerWith, AMachineThatFailedInsideOfACallIsADeath) {
  for (const RankAnswer& answer :
       {After(Cause::kItself, EngineOutcome::Kind::kAborted), After(Cause::kBroken)}) {
    EXPECT_EQ(answer.end.kind, RankEnd::kException);
    EXPECT_EQ(answer.end.detail, "the machine failed: the reason\n  first\n  second");
  }
}
TEST(AnswerWith, HangAndTold) {
  EXPECT_EQ(After(Cause::kHung).end.kind, RankEnd::kHung);
  EXPECT_EQ(After(Cause::kHung).end.detail, "the reason\n  first\n  second");
  EXPECT_EQ(After(Cause::kTold).end.kind, RankEnd::kAborted);
  EXPECT_THAT(After(Cause::kTold).end.detail, HasSubstr("ended because of the reason"));
  EXPECT_TRUE(After(Cause::kTold).waited);
}

std::vector<RankEnd::Kind> Kinds(const CaseEnd& end) {
  std::vector<RankEnd::Kind> kinds;
  for (const RankEnd& one : end.ranks) kinds.push_back(one.kind);
  return kinds;
}

TEST(EndOf, AllReturned) {
  const CaseEnd end = EndOf({Ended(RankEnd::kReturned), Ended(RankEnd::kReturned)});
  EXPECT_FALSE(end.hang);
  EXPECT_THAT(end.hang_report, IsEmpty());
}
TEST(EndOf, WhoWaitsInAHangHangsToo) {
  const CaseEnd end = EndOf({Ended(RankEnd::kAborted, "told", true),
                             Ended(RankEnd::kHung, "in b", true), Ended(RankEnd::kAborted)});
  EXPECT_TRUE(end.hang);
  EXPECT_THAT(Kinds(end), ElementsAre(RankEnd::kHung, RankEnd::kHung, RankEnd::kAborted));
  EXPECT_EQ(end.hang_report, "rank 0: told\nrank 1: in b");
}
TEST(EndOf, ADeathIsTheCauseOfAll) {
  const CaseEnd end =
      EndOf({Ended(RankEnd::kHung, "in a", true), Ended(RankEnd::kSignal, "ended by SIGSEGV"),
             Ended(RankEnd::kException, "the machine failed: ncclRemoteError")});
  EXPECT_FALSE(end.hang);
  EXPECT_THAT(Kinds(end), ElementsAre(RankEnd::kAborted, RankEnd::kSignal, RankEnd::kAborted));
}
TEST(EndOf, ALoopIsTheCauseOfAll) {
  const CaseEnd end = EndOf(
      {Ended(RankEnd::kHung, "without progress for 5 s"), Ended(RankEnd::kHung, "in a", true)});
  EXPECT_FALSE(end.hang);
  EXPECT_THAT(Kinds(end), ElementsAre(RankEnd::kHung, RankEnd::kAborted));
}
TEST(EndOf, AnExceptionOfTheEngineStays) {
  EXPECT_THAT(Kinds(EndOf({Ended(RankEnd::kException, "an exception: x"), Ended(RankEnd::kExit)})),
              ElementsAre(RankEnd::kException, RankEnd::kExit));
}
TEST(EndOf, MismatchesAreNamedOnce) {
  RankAnswer one = Ended(RankEnd::kReturned), two = Ended(RankEnd::kReturned);
  one.mismatches = {"b", "a"};
  two.mismatches = {"a"};
  EXPECT_THAT(EndOf({one, two}).mismatches, ElementsAre("a", "b"));
}

// ---- environment

using Variables = std::map<std::string, std::string>;
Environment Of(const Variables& variables) {
  return [&variables](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  };
}
Variables Set(const RankPlace& place, const Variables& before = {}) {
  Variables set;
  for (const auto& [name, value] : NcclVariables(place, Of(before))) set[name] = value;
  return set;
}

TEST(NcclVariables, RanksWithDevicesOfTheirOwnNeedNothing) {
  EXPECT_THAT(Set({1, 1, 2, 2, 22809}), IsEmpty());
  EXPECT_THAT(Set({9, 1, 8, 8, 23000}), IsEmpty());
}
TEST(NcclVariables, TwoRanksOnOneDevice) {
  EXPECT_EQ(Set({1, 1, 2, 1, 22809}), (Variables{{"NCCL_HOSTID", "shardproof-rank-1"},
                                                 {"NCCL_SOCKET_IFNAME", "lo"},
                                                 {"NCCL_MAX_CTAS", "4"}}));
}
TEST(NcclVariables, TheSwitchFromTwoThirtyOn) {
  const Variables set = Set({0, 0, 4, 1, 23003});
  EXPECT_EQ(set.at("NCCL_MULTI_RANK_GPU_ENABLE"), "1");
  EXPECT_EQ(set.at("NCCL_NVLS_ENABLE"), "0");
  EXPECT_EQ(set.at("NCCL_MAX_CTAS"), "2");
}
TEST(NcclVariables, OldVersionsHaveNoCtas) {
  EXPECT_EQ(Set({0, 0, 2, 1, 21602}).count("NCCL_MAX_CTAS"), 0u);
}
TEST(NcclVariables, ManyRanksHaveOneCtaAtLeast) {
  EXPECT_EQ(Set({0, 0, 32, 1, 22809}).at("NCCL_MAX_CTAS"), "1");
}
TEST(NcclVariables, WhatTheUserHasSetStays) {
  const Variables set =
      Set({3, 1, 2, 1, 23000},
          {{"NCCL_SOCKET_IFNAME", "eth0"}, {"NCCL_MAX_CTAS", "7"}, {"NCCL_HOSTID", "h"}});
  EXPECT_EQ(set.count("NCCL_SOCKET_IFNAME"), 0u);
  EXPECT_EQ(set.count("NCCL_MAX_CTAS"), 0u);
  EXPECT_EQ(set.at("NCCL_HOSTID"), "h-rank-3");
}
TEST(EnvironmentFact, QueuesAreAlwaysNamed) {
  EXPECT_EQ(EnvironmentFact(Of({})),
            "CUDA_DEVICE_MAX_CONNECTIONS is not set (CUDA's default: 8 hardware queues)");
  const Variables some = {{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}, {"NCCL_MAX_CTAS", "4"}};
  EXPECT_EQ(EnvironmentFact(Of(some)), "NCCL_MAX_CTAS=4, CUDA_DEVICE_MAX_CONNECTIONS=1");
}

}  // namespace
}  // namespace shardproof
