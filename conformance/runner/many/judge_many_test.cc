#include "conformance/runner/many/judge_many.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "conformance/checks/symmetry/world_folder.h"
#include "conformance/runner/many/world_evidence.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

using symmetry::CompactWorld;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

CompactWorld Compacted(const RunData& data) {
  symmetry::CompactWorldBuilder builder;
  for (size_t rank = 0; rank < data.run.traces.size(); ++rank)
    builder.Add(data.run.traces[rank], data.run.outcomes[rank]);
  return builder.Take();
}

std::set<std::string> Broken(const CheckResult& result) {
  std::set<std::string> ids;
  for (const Finding& finding : result.findings) ids.insert(finding.requirement);
  return ids;
}

class JudgeManyTest : public testing::Test {
 protected:
  RunData Dry(const Case& c, const std::string& fault = "") const {
    SimRunOptions options;
    if (!fault.empty()) options.rank.fault = ParseFault(fault);
    return RunDry(c, MakeModels(c), plugin_, options);
  }
  CompactWorld World() const { return Compacted(Dry(case_)); }

  const Plugin plugin_{"builtin:reference"};
  const Case case_ = ParseId("w16.zero3.n2.twin.tp2.etp2.k2");
};

TEST_F(JudgeManyTest, AGoodEngineIsGood) {
  const Verdict verdict = JudgeManyRanks(case_, World(), "");
  EXPECT_EQ(verdict.outcome, Outcome::kPass);
  for (const char* id : {"GE-01", "GE-03", "GE-05", "GE-11", "GE-18", "GE-24", "PG-02"})
    EXPECT_THAT(verdict.result.judged, Contains(id));
  EXPECT_THAT(verdict.result.judged, Not(Contains("FS-02"))) << "it needs the case";
  EXPECT_THAT(verdict.result.judged, Not(Contains("GE-30"))) << "it compares numbers";
}

// Of what both judge, through shapes and from all traces, both say the same.
TEST_F(JudgeManyTest, FaultsOfOneRankAreFoundAsInTheWholeWorld) {
  for (const char* fault :
       {"communicate:20:reorder@5", "communicate:20:drop@9", "communicate:20:corrupt=0@15",
        "event_wait:5:drop@3", "event_wait:6:drop@12", "mem_free:7:drop@8"}) {
    const RunData data = Dry(case_, fault);
    const Verdict whole = JudgeRun(case_, data.run, Numbers::kNotKept);
    const Verdict many = JudgeManyRanks(case_, Compacted(data), "");
    std::set<std::string> want = Broken(whole.result);
    std::erase_if(want, [&](const std::string& id) { return !many.result.judged.contains(id); });
    EXPECT_EQ(Broken(many.result), want) << fault;
    EXPECT_EQ(many.outcome, whole.outcome) << fault;
  }
}

TEST_F(JudgeManyTest, AnEngineThatDoesNothingHasShownNothing) {
  RunData data = Dry(case_);
  for (Trace& trace : data.run.traces) {
    trace.events.clear();
    trace.groups.clear();
  }
  const Verdict verdict = JudgeManyRanks(case_, Compacted(data), "");
  EXPECT_NE(verdict.outcome, Outcome::kPass);
  EXPECT_THAT(verdict.result.judged, Not(Contains("GE-03")));
}

TEST_F(JudgeManyTest, AnEngineThatAnswersAndIssuesNothingHasShownNothing) {
  RunData data = Dry(case_);
  for (Trace& trace : data.run.traces) {
    std::erase_if(trace.events, [](const Event& event) {
      return event.kind != EventKind::kCallBegin && event.kind != EventKind::kCallEnd;
    });
    trace.groups.clear();
  }
  const Verdict verdict = JudgeManyRanks(case_, Compacted(data), "");
  EXPECT_EQ(verdict.outcome, Outcome::kPartial);
  std::set<std::string> missing;
  for (const NotCheckable& row : verdict.result.not_checkable) {
    if (row.kind == NotCheckable::Kind::kMissing) missing.insert(row.requirement);
  }
  for (const char* id : {"GE-01", "GE-03", "GE-04", "PG-02"}) EXPECT_THAT(missing, Contains(id));
}

TEST_F(JudgeManyTest, AnEndThatNoCheckKnowsIsNotPassedOver) {
  RunData data = Dry(case_);
  data.run.outcomes[3].kind = EngineOutcome::Kind::kRejected;
  EXPECT_NE(JudgeManyRanks(case_, Compacted(data), "").outcome, Outcome::kPass);
}

TEST_F(JudgeManyTest, RanksThatAnswerDifferentlyAreFound) {
  RunData data = Dry(case_);
  for (Event& event : data.run.traces[6].events) {
    if (event.kind == EventKind::kCallEnd && event.call == 2) event.status = SPF_FAILED;
  }
  const Verdict verdict = JudgeManyRanks(case_, Compacted(data), "");
  const auto at = std::find_if(verdict.result.findings.begin(), verdict.result.findings.end(),
                               [](const Finding& f) { return f.requirement == "GE-24"; });
  ASSERT_NE(at, verdict.result.findings.end());
  EXPECT_EQ(at->rank, 6);
}

TEST_F(JudgeManyTest, AGroupWithOtherMembersIsFound) {
  CompactWorld world = World();
  for (symmetry::Comm& comm : world.comms) {
    if (comm.key == "i0/dp_cp[1]") std::swap(comm.members[0], comm.members[1]);
  }
  EXPECT_THAT(Broken(JudgeManyRanks(case_, world, "").result), Contains("PG-02"));
}

TEST_F(JudgeManyTest, WhatLeavesTheProcessComesBack) {
  const Frame frame = RunManyDry(case_, MakeModels(case_), plugin_, {});
  const CompactWorld world = ManyRanksOf({frame.begin(), frame.end()}, case_);
  const RunData data = Dry(case_);
  EXPECT_LT(world.shapes.size(), data.run.traces.size());
  for (int32_t rank = 0; rank < case_.world; ++rank)
    EXPECT_EQ(TraceToText(world.Expand(rank)), TraceToText(data.run.traces[size_t(rank)]));
}

// It comes from a process that ran foreign code.
TEST_F(JudgeManyTest, EvidenceThatIsNoneIsRefused) {
  const Frame good = RunManyDry(case_, MakeModels(case_), plugin_, {});
  const auto refused = [&](const std::function<void(Frame&)>& change) {
    Frame frame = good;
    change(frame);
    EXPECT_THROW(ManyRanksOf({frame.begin(), frame.end()}, case_), std::runtime_error);
  };
  refused([](Frame& frame) { frame.clear(); });
  refused([](Frame& frame) { frame.pop_back(); });
  refused([](Frame& frame) { frame[0] = "99"; });
  refused([](Frame& frame) { frame[1].resize(frame[1].size() - 8); });
  refused([](Frame& frame) { frame[2].resize(frame[2].size() - 3); });
  refused([](Frame& frame) { std::fill(frame[2].begin(), frame[2].begin() + 8, '\x7f'); });
  refused([](Frame& frame) { frame[2] += std::string(8, '\0'); });
  refused([](Frame& frame) { std::swap(frame[1], frame[2]); });
}

class WorldFolderTest : public JudgeManyTest {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    symmetry::WriteWorldFolder(World(), folder_);
  }
  std::string Text() const {
    std::ifstream in(folder_ / "names.jsonl");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string ErrorOf(const std::string& text) const {
    std::ofstream(folder_ / "names.jsonl") << text;
    try {
      symmetry::ReadWorldFolder(folder_);
    } catch (const TraceError& error) {
      return error.what();
    }
    return "";
  }
  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "world";
};

TEST_F(WorldFolderTest, ComesBackWhole) {
  ASSERT_TRUE(symmetry::IsWorldFolder(folder_));
  const CompactWorld world = symmetry::ReadWorldFolder(folder_), written = World();
  ASSERT_EQ(world.world(), written.world());
  for (int32_t rank = 0; rank < world.world(); ++rank)
    EXPECT_EQ(TraceToText(world.Expand(rank)), TraceToText(written.Expand(rank)));
}

TEST_F(WorldFolderTest, NamesBesideATraceForEachRankAreNotRead) {
  const std::string names = Text();
  WriteTraceFolder(Dry(case_).run.traces, folder_);
  std::ofstream(folder_ / "names.jsonl") << names;
  EXPECT_FALSE(symmetry::IsWorldFolder(folder_));
}

TEST_F(WorldFolderTest, WhatIsWrongIsRefusedWithItsLine) {
  const std::string good = Text();
  EXPECT_EQ(ErrorOf(good), "");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return ErrorOf(text.replace(at, from.size(), to));
  };
  EXPECT_THAT(ErrorOf(""), HasSubstr("names.jsonl"));
  EXPECT_THAT(ErrorOf("nonsense\n"), HasSubstr("no JSON object"));
  EXPECT_THAT(changed("\"shardproof_names\":1", "\"shardproof_names\":2"),
              HasSubstr("not in 0..1"));
  EXPECT_THAT(changed("\"world\":16", "\"world\":17"), Not(IsEmpty()));
  EXPECT_THAT(changed("\"ranks\":[[0,", "\"ranks\":[[900,"), HasSubstr("not in 0..15"));
  EXPECT_THAT(changed("\"comms\":[", "\"comms\":[0,"), HasSubstr("do not fit"));
  EXPECT_THAT(changed("\"rank\":3", "\"rank\":4"), HasSubstr("in order"));
  EXPECT_THAT(changed("\"like\":0,\"rank\":1", "\"like\":1,\"rank\":1"), Not(IsEmpty()));
  EXPECT_THAT(ErrorOf(good.substr(0, good.size() / 2)), Not(IsEmpty()));
}

}  // namespace
}  // namespace shardproof
