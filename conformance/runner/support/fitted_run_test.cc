// What is said of an engine that declines in the run what it takes, or is said to take?
#include "conformance/runner/support/fitted_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/selection.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;
using Takes = std::function<bool(const InstanceSpec& spec)>;

class FittedRunTest : public testing::Test {
 protected:
  // A core run of an engine that a file tells of, and that takes what `takes` says.
  RunReport Run(const std::string& supports, const Takes& takes,
                const std::string& cut_short = "") {
    Options options;
    options.impl = "lib:engine.so";
    options.supports = scratch_.path() + "/engine.toml";
    std::ofstream(options.supports) << supports;
    FittedRun run(options, 4);
    const auto report_of = [&](const Case& c) { return ReportOf(c, takes); };
    const std::vector<Case> cases = run.Cases();
    for (size_t i = 0; i < cases.size(); ++i) run.CaseDone(i, cases[i], report_of(cases[i]));
    asked_on_ = 0;
    run.AskOn([&](const std::vector<Case>& some, const IsLast& last) {
      EXPECT_FALSE(last) << "nothing failed that could be shrunk";
      asked_on_ += some.size();
      std::vector<CaseReport> reports;
      for (const Case& c : some) reports.push_back(report_of(c));
      return reports;
    });
    RunReport report;
    report.cut_short = cut_short;
    run.Conclude(&report);
    return report;
  }

  // Of cases that were chosen elsewhere.
  std::string ProblemsOf(const std::string& profile, const std::vector<std::string>& ids,
                         const Takes& takes) {
    Options options;
    options.impl = "trace:folder";
    options.profile = profile;
    options.supports = scratch_.path() + "/engine.toml";
    std::ofstream(options.supports) << file_;
    FittedRun run(options, 4);
    for (const std::string& id : ids) {
      const Case c = ParseId(id);
      run.CaseDone(0, c, ReportOf(c, takes));
    }
    RunReport report;
    run.Conclude(&report);
    std::string all;
    for (const std::string& one : report.problems) all += one + "\n";
    for (const std::string& one : report.facts) pairs_ |= one.starts_with("pairs of ");
    return all;
  }

  static CaseReport ReportOf(const Case& c, const Takes& takes) {
    CaseReport report;
    report.id = Id(c);
    const bool taken = !c.illegal.empty() || takes(c.instances.front());
    report.status = taken ? Status::kPass : Status::kUnsupported;
    report.reason = taken ? "" : "not that";
    return report;
  }

  const std::string file_ =
      "[strategies]\nmicrobatches = ['1', '2']\nrecompute = ['0', '1']\ntied = ['0', '1']\n";
  size_t asked_on_ = 0;
  bool pairs_ = false;  // are counted

 private:
  const ScratchFolder scratch_;
};

TEST_F(FittedRunTest, AllIsTaken) {
  const RunReport report = Run(file_, [](const InstanceSpec&) { return true; });
  EXPECT_TRUE(report.problems.empty()) << report.problems.front();
  EXPECT_EQ(asked_on_, 0u);
}

// A leg that saves may need more ranks than the one that loads.
TEST_F(FittedRunTest, NoLegNeedsMoreRanksThanThereAre) {
  for (const char* fabric : {"mpi", "nccl"}) {
    Options options;
    options.fabric = fabric;
    options.ranks = 2;
    const std::vector<Case> cases = FittedRun(options, 2).Cases();
    EXPECT_GE(cases.size(), 50u);
    for (const Case& c : cases) EXPECT_LE(MostRanks(c), 2) << Id(c);
  }
}

TEST_F(FittedRunTest, WhatTheFabricCannotRunIsLeftOutAndCounted) {
  Options options;
  options.fabric = "nccl";
  options.ranks = 3;
  FittedRun run(options, 3);
  for (const Case& c : run.Cases()) EXPECT_EQ(NotForFabric(c, options), "") << Id(c);
  RunReport report;
  run.Conclude(&report);
  std::string facts;
  for (const std::string& fact : report.facts) facts += fact + "\n";
  EXPECT_NE(facts.find(" not asked because NCCL averages"), std::string::npos) << facts;
}

TEST_F(FittedRunTest, WhatTheFabricCannotRunIsDeclinedUpToTheLastCase) {
  Options options;
  options.fabric = "nccl";
  options.ranks = 3;
  const std::vector<Case> cases{ParseId("w3.ddp.avg"), ParseId("w3.ddp"), ParseId("w3.ddp.bias"),
                                ParseId("w3.ddp.avg.bias")};
  const auto statuses = [&](const std::string& last) {
    const auto is_last = [&](const CaseReport& report) { return report.id == last; };
    const auto judge = [&](const std::vector<Case>& some, const IsLast& ends) {
      std::vector<CaseReport> reports;
      for (size_t i = 0; i < some.size() && (i == 0 || !ends(reports.back())); ++i)
        reports.push_back(ReportOf(some[i], [](const InstanceSpec&) { return true; }));
      return reports;
    };
    std::string all;
    for (const CaseReport& report : JudgeRunnable(judge, cases, is_last, options))
      all += report.id + " " + StatusName(report.status) + "\n";
    return all;
  };
  EXPECT_EQ(statuses("w3.ddp"), "w3.ddp.avg unsupported\nw3.ddp pass\n");
  EXPECT_EQ(statuses("w3.ddp.bias"), "w3.ddp.avg unsupported\nw3.ddp pass\nw3.ddp.bias pass\n");
  EXPECT_EQ(statuses(""),
            "w3.ddp.avg unsupported\nw3.ddp pass\nw3.ddp.bias pass\nw3.ddp.avg.bias unsupported\n");
}

// Values that took the place of drawn ones are not asked for in the place of these.
TEST_F(FittedRunTest, ARandomRunAsksNothingMoreWhereAllIsTaken) {
  Options options;
  options.random = 40;
  FittedRun run(options, 0);
  const std::vector<Case> cases = run.Cases();
  const auto taken = [](const Case& c) { return ReportOf(c, [](const auto&) { return true; }); };
  for (size_t i = 0; i < cases.size(); ++i) run.CaseDone(i, cases[i], taken(cases[i]));
  const auto asks = [&](const std::vector<Case>& some, const IsLast&) {
    std::vector<CaseReport> reports;
    for (const Case& c : some) ADD_FAILURE() << Id(c), reports.push_back(taken(c));
    return reports;
  };
  EXPECT_TRUE(run.AskOn(asks).empty());
}

// Legal ones first, then as many that must be refused; of other seeds, others.
TEST_F(FittedRunTest, RandomCasesAreFollowedByRefusals) {
  Options options;
  options.random = 20;
  const auto refused = [&](uint64_t seed, int ranks) {
    options.seed = seed;
    options.ranks = ranks;
    std::vector<std::string> ids;
    const std::vector<Case> cases = FittedRun(options, ranks).Cases();
    for (size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(cases[i].illegal.empty(), i < 20) << i;
      if (!cases[i].illegal.empty()) ids.push_back(Id(cases[i]));
      EXPECT_LE(MostRanks(cases[i]), ranks > 0 ? ranks : 64) << Id(cases[i]);
    }
    return ids;
  };
  const std::vector<std::string> of_one = refused(1, 0);
  EXPECT_EQ(of_one.size(), 20u);
  EXPECT_NE(of_one, refused(2, 0));
  EXPECT_GE(refused(1, 2).size(), 5u);
}

TEST_F(FittedRunTest, NothingIsRefusedWhereNothingCanBeDrawn) {
  Options options;
  options.random = 5;
  // Four instances of one rank: there is no such grid.
  FittedRun run(options, 0, "[strategies]\nworld = ['1']\nnum_optimizer_instances = ['4']\n");
  EXPECT_TRUE(run.Cases().empty());
}

TEST_F(FittedRunTest, AValueThatIsDeclinedEverywhereIsAProblem) {
  const RunReport report =
      Run(file_, [](const InstanceSpec& spec) { return spec.microbatches == 1; });
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_NE(report.problems[0].find("engine.toml: strategies, microbatches 2: the file names it"),
            std::string::npos)
      << report.problems[0];
  EXPECT_NE(report.problems[0].find("(not that)"), std::string::npos);
}

TEST_F(FittedRunTest, APairThatIsDeclinedIsTold) {
  const RunReport report = Run(
      file_, [](const InstanceSpec& spec) { return spec.microbatches == 1 || !spec.recompute; });
  EXPECT_TRUE(report.problems.empty()) << report.problems.front();
  std::string facts;
  for (const std::string& fact : report.facts) facts += fact + "\n";
  EXPECT_NE(facts.find("; not judged: microbatches=2 recompute=1"), std::string::npos) << facts;
  EXPECT_EQ(facts.find("not judged: microbatches=2 tied"), std::string::npos);
}

// Worlds of several ranks are taken, but only where no two of them have the same parameter: one
// takes part, or each has its own stage.
TEST_F(FittedRunTest, AllThatRanksShareIsDeclined) {
  const std::string file =
      "[strategies]\nworld = ['1', '2']\nplace = ['whole', 'from1']\npp = ['1', '2']\n"
      "microbatches = ['1', '2']\n";
  const auto problems = [&](int32_t most, const std::string& cut_short) {
    std::string all;
    const auto takes = [&](const InstanceSpec& spec) { return spec.span / spec.pp <= most; };
    for (const std::string& one : Run(file, takes, cut_short).problems) all += one + "\n";
    return all;
  };
  EXPECT_NE(problems(1, "").find("no reduction over ranks was judged"), std::string::npos)
      << problems(1, "");
  EXPECT_EQ(problems(2, ""), "");
  // Cases that were not run were not declined.
  EXPECT_EQ(problems(1, "out of time").find("no reduction over ranks"), std::string::npos);
}

// `check` judges cases that were chosen elsewhere.
TEST_F(FittedRunTest, SmokeCountsNoPairsAndAsksForAReductionToo) {
  const auto alone = [](const InstanceSpec& spec) { return spec.span == 1; };
  const auto all = [](const InstanceSpec&) { return true; };
  EXPECT_THAT(ProblemsOf("smoke", {"w1.ddp", "w2.ddp"}, alone),
              HasSubstr("such as w2.ddp (not that), so that no reduction over ranks was judged"));
  EXPECT_EQ(ProblemsOf("smoke", {"w1.ddp", "w2.ddp"}, all), "");
  EXPECT_FALSE(pairs_);
  EXPECT_EQ(ProblemsOf("core", {"w1.ddp", "w2.ddp"}, all), "");
  EXPECT_TRUE(pairs_);
}

TEST_F(FittedRunTest, AnEvaluationReducesNothing) {
  const auto evaluates = [](const InstanceSpec& spec) {
    return spec.script.find('t') == std::string::npos;
  };
  EXPECT_THAT(ProblemsOf("core", {"w2.ddp.do=ee", "w2.ddp"}, evaluates), HasSubstr("no reduction"));
}

TEST_F(FittedRunTest, EverythingIsDeclined) {
  const RunReport report = Run(file_, [](const InstanceSpec&) { return false; });
  EXPECT_GE(report.problems.size(), 6u);
}

}  // namespace
}  // namespace shardproof
