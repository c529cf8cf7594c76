#include "conformance/checks/numerics/numerics.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/common/at.h"
#include "conformance/trace/digest.h"

namespace shardproof {
namespace {

Event& PublishOf(Run& run, int rank, int result, int call) {
  for (Event& event : At(run.traces, rank).events) {
    if (event.kind == EventKind::kPublish && event.result == result && event.call == call)
      return event;
  }
  throw std::logic_error("no such publish");
}
double& ValueOf(Run& run, int rank, int result, int call, int64_t element = 0) {
  const Event& event = PublishOf(run, rank, result, call);
  return At(At(run.traces, rank).values, event.values + element);
}
void Drop(Run& run, int rank, const std::function<bool(const Event&)>& match) {
  std::vector<Event>& events = At(run.traces, rank).events;
  events.erase(std::find_if(events.begin(), events.end(), match));
}

TEST(Numerics, AGoodRunHasNoFinding) {
  const CheckResult result = CheckNumerics(RunMini(MiniCase(2)).run);
  EXPECT_EQ(FoundIn(result), "") << (result.findings.empty() ? "" : result.findings[0].message);
  for (const char* id : {"FS-01", "FS-15", "FS-20", "FS-24", "FS-28", "GE-29", "GE-30", "GE-31"}) {
    EXPECT_TRUE(result.judged.contains(id)) << id;
  }
}

TEST(Numerics, AWrongParameterNamesTheElementAndBothValues) {
  MiniRun mini = RunMini(MiniCase(2));
  ValueOf(mini.run, 1, SPF_RESULT_PARAM, 1, 2) += 0.5;
  const CheckResult result = CheckPublished(mini.run);
  ASSERT_EQ(FoundIn(result), "FS-24");
  EXPECT_EQ(result.findings[0].rank, 1);
  EXPECT_EQ(result.findings[0].step, 0);
  EXPECT_NE(result.findings[0].message.find("differs in 1 of"), std::string::npos)
      << result.findings[0].message;
  EXPECT_NE(result.findings[0].seen.find("(0x"), std::string::npos);
}

TEST(Numerics, MinusZeroEqualsZero) {
  MiniRun mini = RunMini(MiniCase(2));
  double& value = ValueOf(mini.run, 0, SPF_RESULT_PARAM, 0, 0);  // key 0, element 0, call 0: zero
  ASSERT_EQ(value, 0);
  value = -0.0;
  EXPECT_EQ(FoundIn(CheckPublished(mini.run)), "");
}

TEST(Numerics, NanIsNeverRight) {
  MiniRun mini = RunMini(MiniCase(2));
  ValueOf(mini.run, 0, SPF_RESULT_PARAM, 2) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(FoundIn(CheckPublished(mini.run)), "FS-24");
}

TEST(Numerics, AWrongGradient) {
  MiniRun mini = RunMini(MiniCase(2));
  ValueOf(mini.run, 0, SPF_RESULT_GRAD, 1) += 1;
  EXPECT_EQ(FoundIn(CheckPublished(mini.run)), "FS-15");
}

TEST(Numerics, AGradientThatIsTwiceAsLarge) {
  MiniRun mini = RunMini(MiniCase(1));
  const Event& event = PublishOf(mini.run, 0, SPF_RESULT_GRAD, 1);
  for (int64_t i = 0; i < event.count; ++i) At(mini.run.traces[0].values, event.values + i) *= 2;
  const CheckResult result = CheckPublished(mini.run);
  ASSERT_EQ(FoundIn(result), "FS-17");
  EXPECT_NE(result.findings[0].message.find("every element is 2 times"), std::string::npos);
}

TEST(Numerics, AParameterThatWasNotUpdatedIsStale) {
  MiniRun mini = RunMini(MiniCase(1));
  const Event& now = PublishOf(mini.run, 0, SPF_RESULT_PARAM, 2);
  const Event& before = PublishOf(mini.run, 0, SPF_RESULT_PARAM, 1);
  auto& values = mini.run.traces[0].values;
  for (int64_t i = 0; i < now.count; ++i)
    At(values, now.values + i) = At(values, before.values + i);
  const CheckResult result = CheckPublished(mini.run);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_NE(result.findings[0].message.find("stale: it equals the value of train_step 0"),
            std::string::npos)
      << result.findings[0].message;
}

TEST(Numerics, AGradientThatNobodyPublishes) {
  MiniRun mini = RunMini(MiniCase(2));
  Drop(mini.run, 0,
       [](const Event& e) { return e.kind == EventKind::kPublish && e.result == SPF_RESULT_GRAD; });
  EXPECT_EQ(FoundIn(CheckPublished(mini.run)), "GE-31");
}

TEST(Numerics, ReplicasThatDiffer) {
  MiniRun mini = RunMini(MiniCase(4, [](InstanceSpec& spec) { spec.outer = 2; }));
  ValueOf(mini.run, 2, SPF_RESULT_PARAM, 1) += 1;
  const std::string found = FoundIn(CheckPublished(mini.run));
  EXPECT_NE(found.find("FS-20"), std::string::npos) << found;
}

TEST(Numerics, AReplicaWhoseWorkNeverRanDiffersFromNobody) {
  MiniRun mini = RunMini(MiniCase(4, [](InstanceSpec& spec) { spec.outer = 2; }));
  PublishOf(mini.run, 2, SPF_RESULT_PARAM, 1).values = -1;
  EXPECT_EQ(FoundIn(CheckPublished(mini.run)), "");
}

TEST(Numerics, AStepThatShouldHaveBeenSkipped) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.oracles[0]->calls[2].updated = false;
  EXPECT_NE(FoundIn(CheckPublished(mini.run)).find("GE-33"), std::string::npos);
}

TEST(Numerics, AFrozenParameterWithAPublishedGradient) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.model.frozen = "embedding"; }));
  const InstanceFacts facts(mini.spec->instances[0], 2);
  int32_t frozen = 0;
  while (!facts.Param(0, frozen).frozen) ++frozen;
  PublishOf(mini.run, 0, SPF_RESULT_GRAD, 1).id = frozen;
  EXPECT_NE(FoundIn(CheckPublished(mini.run)).find("FS-34"), std::string::npos);
}

TEST(Numerics, AStaleReadNamesTheCallThatItEquals) {
  MiniRun mini = RunMini(MiniCase(1));
  Trace& trace = mini.run.traces[0];
  std::map<int32_t, uint64_t> first;  // digest by parameter in call 1
  for (Event& event : trace.events) {
    for (uint32_t k = event.reads.begin; k < event.reads.end; ++k) {
      if (event.call == 1) first[trace.reads[k].param] = trace.reads[k].digest;
      if (event.call == 2) trace.reads[k].digest = first[trace.reads[k].param];
    }
  }
  const CheckResult result = CheckReads(mini.run);
  ASSERT_EQ(FoundIn(result), "FS-23");
  EXPECT_NE(result.findings[0].seen.find("stale: it equals the value of create"),
            std::string::npos);
}

// Also where the same bytes are published afterwards.
TEST(Numerics, AReadOfMemoryThatWasNeverWrittenIsPoisonAndNotTooNew) {
  MiniRun mini = RunMini(MiniCase(1));
  Trace& trace = mini.run.traces[0];
  const InstanceFacts facts(mini.spec->instances[0], 1);
  const double poison = std::bit_cast<float>(0xFFFFFFFFu);
  for (int64_t i = 0; i < PublishOf(mini.run, 0, SPF_RESULT_PARAM, 1).count; ++i)
    ValueOf(mini.run, 0, SPF_RESULT_PARAM, 1, i) = poison;
  const int32_t param = PublishOf(mini.run, 0, SPF_RESULT_PARAM, 1).id;
  const std::vector<uint32_t> ones(size_t(facts.Param(0, param).numel), 0xFFFFFFFFu);
  for (Event& event : trace.events) {
    for (uint32_t k = event.reads.begin; event.call == 1 && k < event.reads.end; ++k) {
      if (trace.reads[k].param == param)
        trace.reads[k].digest = DigestValues(ones.data(), SPF_F32, 0, Length(ones));
    }
  }
  const CheckResult result = CheckReads(mini.run);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].requirement, "FS-01");
  EXPECT_NE(result.findings[0].seen.find("poison: memory that was never written"),
            std::string::npos)
      << result.findings[0].seen;
}

TEST(Numerics, SomeElementsThatAreNoNumbersAreNoFactor) {
  for (const bool all : {false, true}) {
    MiniRun mini = RunMini(MiniCase(1));
    const Event& event = PublishOf(mini.run, 0, SPF_RESULT_GRAD, 1);
    ASSERT_GT(event.count, 2);
    for (int64_t i = 0; i < (all ? event.count : 2); ++i)
      ValueOf(mini.run, 0, SPF_RESULT_GRAD, 1, i) = std::numeric_limits<double>::quiet_NaN();
    const CheckResult result = CheckPublished(mini.run);
    ASSERT_EQ(FoundIn(result), "FS-15");
    EXPECT_NE(result.findings[0].message.find(all ? ": all of it is NaN" : ": 2 are NaN"),
              std::string::npos)
        << result.findings[0].message;
  }
}

TEST(Numerics, ANormThatIsNoNumberIsNotSomeTimesWhatIsExpected) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.grad_norm = true; }));
  ValueOf(mini.run, 0, SPF_RESULT_GRAD_NORM, 1) = -std::numeric_limits<double>::quiet_NaN();
  const CheckResult result = CheckScalars(mini.run);
  ASSERT_EQ(FoundIn(result), "FS-25");
  EXPECT_EQ(result.findings[0].message,
            "the gradient norm is no number: it is NaN: a summand was no number");
}

TEST(Numerics, AReadOfOtherValuesIsFound) {
  MiniRun mini = RunMini(MiniCase(1));
  for (Event& event : mini.run.traces[0].events) {
    if (!event.reads.empty()) mini.run.traces[0].reads[event.reads.begin].digest += 1;
    if (!event.reads.empty()) break;
  }
  EXPECT_EQ(FoundIn(CheckReads(mini.run)), "FS-01");
}

TEST(Numerics, ReadsAtOrderLevelCannotBeJudged) {
  MiniRun mini = RunMini(MiniCase(1));
  mini.run.traces[0].provides.digests = false;
  const CheckResult result = CheckReads(mini.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_FALSE(result.not_checkable.empty());
}

TEST(Numerics, AWrongLoss) {
  MiniRun mini = RunMini(MiniCase(2));
  ValueOf(mini.run, 1, SPF_RESULT_LOSS, 1) += 1;
  EXPECT_EQ(FoundIn(CheckScalars(mini.run)), "GE-30");
}

TEST(Numerics, ALossThatIsNotPublished) {
  MiniRun mini = RunMini(MiniCase(2));
  Drop(mini.run, 0,
       [](const Event& e) { return e.kind == EventKind::kPublish && e.result == SPF_RESULT_LOSS; });
  EXPECT_EQ(FoundIn(CheckScalars(mini.run)), "GE-30");
}

TEST(Numerics, ASampleOfAnotherRank) {
  MiniRun mini = RunMini(MiniCase(2));
  for (Event& event : mini.run.traces[1].events) {
    if (event.kind == EventKind::kCompute && event.sample >= 0) event.sample = 0;
  }
  const std::string found = FoundIn(CheckScalars(mini.run));
  EXPECT_NE(found.find("GE-29"), std::string::npos) << found;
}

TEST(Numerics, AWrongGradientNorm) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.grad_norm = true; }));
  ValueOf(mini.run, 0, SPF_RESULT_GRAD_NORM, 1) = 4;
  const CheckResult result = CheckScalars(mini.run);
  ASSERT_EQ(FoundIn(result), "FS-25");
  EXPECT_NE(result.findings[0].message.find("it is 2 times what is"), std::string::npos);
}

TEST(Numerics, ANormThatWasAskedForAndNotPublished) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.grad_norm = true; }));
  for (int rank = 0; rank < 2; ++rank) {
    for (int step = 0; step < 2; ++step) {
      Drop(mini.run, rank, [](const Event& e) {
        return e.kind == EventKind::kPublish && e.result == SPF_RESULT_GRAD_NORM;
      });
    }
  }
  EXPECT_EQ(FoundIn(CheckScalars(mini.run)), "FS-25");
}

TEST(Numerics, ANumberOfZerosThatCountsReplicas) {
  const auto asked = [](InstanceSpec& spec) { spec.zero_count = true; };
  EXPECT_EQ(FoundIn(CheckScalars(RunMini(MiniCase(2, asked)).run)), "");
  MiniRun mini = RunMini(MiniCase(2, asked));
  ValueOf(mini.run, 0, SPF_RESULT_ZERO_COUNT, 1) = 6;
  const CheckResult result = CheckScalars(mini.run);
  ASSERT_EQ(FoundIn(result), "FS-25");
  EXPECT_NE(result.findings[0].message.find("number of zeros"), std::string::npos);
}

TEST(Numerics, ANumberOfZerosThatWasAskedForAndNotPublished) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.zero_count = true; }));
  for (int rank = 0; rank < 2; ++rank) {
    Drop(mini.run, rank, [](const Event& e) {
      return e.kind == EventKind::kPublish && e.result == SPF_RESULT_ZERO_COUNT && e.call == 2;
    });
  }
  const CheckResult result = CheckScalars(mini.run);
  ASSERT_EQ(FoundIn(result), "FS-25");
  EXPECT_NE(result.findings[0].message.find("number of zeros"), std::string::npos);
}

TEST(Numerics, WithoutAnOracleNothingIsJudged) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.oracles.clear();
  const CheckResult result = CheckNumerics(mini.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_FALSE(result.not_checkable.empty());
}

}  // namespace
}  // namespace shardproof
