#include "conformance/checks/base/entry_answer.h"

#include <gtest/gtest.h>

#include "conformance/abi/shardproof.h"

namespace shardproof {
namespace {

using Kind = EngineOutcome::Kind;

constexpr const char* kCalls[] = {"create", "train_step", "eval_step", "save", "load"};

TEST(EntryAnswer, OkIsOk) {
  for (const char* call : kCalls) EXPECT_EQ(AnswerOf(call, SPF_OK, {}).kind, Kind::kOk) << call;
}

TEST(EntryAnswer, OnlyCreateDeclines) {
  EXPECT_EQ(AnswerOf("create", SPF_REJECTED, {}).kind, Kind::kRejected);
  EXPECT_EQ(AnswerOf("create", SPF_UNSUPPORTED, {}).kind, Kind::kUnsupported);
  for (const char* call : {"train_step", "eval_step", "save", "load"}) {
    EXPECT_EQ(AnswerOf(call, SPF_REJECTED, {}).kind, Kind::kFailed) << call;
    EXPECT_EQ(AnswerOf(call, SPF_UNSUPPORTED, {}).why,
              std::string(call) + " answered SPF_UNSUPPORTED: only create may");
  }
}

TEST(EntryAnswer, LoadDeclinesWhatAnotherLegSaved) {
  const HostAnswers leg{false, false, true};
  EXPECT_EQ(AnswerOf("load", SPF_UNSUPPORTED, leg).kind, Kind::kUnsupported);
  EXPECT_EQ(AnswerOf("load", SPF_REJECTED, leg).kind, Kind::kFailed);
  EXPECT_EQ(AnswerOf("save", SPF_UNSUPPORTED, leg).kind, Kind::kFailed);
}

TEST(EntryAnswer, OnlyTheHostRefusesAndAborts) {
  const HostAnswers refused{true, false, false}, aborted{false, true, false};
  for (const char* call : kCalls) {
    EXPECT_EQ(AnswerOf(call, SPF_REFUSED, refused).kind, Kind::kRefused);
    EXPECT_EQ(AnswerOf(call, SPF_ABORTED, aborted).kind, Kind::kAborted);
    EXPECT_EQ(AnswerOf(call, SPF_REFUSED, aborted).kind, Kind::kFailed);
    EXPECT_EQ(AnswerOf(call, SPF_ABORTED, refused).kind, Kind::kFailed);
    EXPECT_EQ(
        AnswerOf(call, SPF_ABORTED, {}).why,
        std::string(call) + " answered SPF_ABORTED, but the host aborted no call of this rank");
  }
}

TEST(EntryAnswer, ANumberThatIsNoStatusIsAFailure) {
  const HostAnswers all{true, true, false};
  for (const int status : {7, 99, -1, 256, 1 << 30}) {
    const EntryAnswer answer = AnswerOf("train_step", status, all);
    EXPECT_EQ(answer.kind, Kind::kFailed);
    EXPECT_EQ(answer.why,
              "train_step answered " + std::to_string(status) + ", which is no spf_status");
  }
  EXPECT_EQ(AnswerOf("load", SPF_NO_MEMORY, all).kind, Kind::kFailed);
  EXPECT_EQ(AnswerOf("load", SPF_FAILED, all).kind, Kind::kFailed);
}

}  // namespace
}  // namespace shardproof
