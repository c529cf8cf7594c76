// report_shards_test: do the reports of shards make one, and those of nothing else?
#include "conformance/report/report_shards.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>

#include "conformance/report/files.h"
#include "conformance/report/reports_for_test.h"

namespace shardproof {
namespace {

// Folders of --report below one.
class ShardFolders : public testing::Test {
 protected:
  void Write(const std::string& shard, const CaseReport& c,
             const std::string& taken_elsewhere = "") {
    RunReport report = Report({c});
    report.shard = shard;
    report.taken_elsewhere = taken_elsewhere;
    Write(report);
  }
  void Write(const RunReport& report) {
    const std::filesystem::path folder = folder_ / std::to_string(++written_);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "report.jsonl") << JsonLines(report);
  }
  void ExpectRefusal(const std::string& why) {
    try {
      ReadReports(folder_);
      FAIL() << why;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) /
                                  testing::UnitTest::GetInstance()->current_test_info()->name();
  int written_ = 0;
};

TEST_F(ShardFolders, AreOneReport) {
  Write("2/2", Passing("w2.ddp"));
  Write("1/2", Unsupported("w4.lw"), "w2.ddp");  // alone there is nothing to judge
  const ReadReport read = ReadReports(folder_);
  EXPECT_EQ(read.cases.size(), 2U);
  EXPECT_EQ(read.verdict, "conformant");
}

// Its engine took a case of its own, or nobody tried another shard's: what it was to show is
// missing.
TEST_F(ShardFolders, OneInWhichNothingWasJudgedMakesTheRunRed) {
  Write("2/2", Passing("w2.ddp"));
  Write("1/2", Unsupported("w4.ddp"));
  EXPECT_EQ(ReadReports(folder_).verdict, "not conformant");
}

TEST_F(ShardFolders, ARedOneMakesTheRunRed) {
  Write("2/2", Failing("w2.ddp"));
  Write("1/2", Passing("w4.ddp"));
  EXPECT_EQ(ReadReports(folder_).verdict, "not conformant");
}

TEST_F(ShardFolders, WhereNothingWasJudgedInAnyAreRed) {
  Write("2/2", Unsupported("w2.lw"));
  Write("1/2", Unsupported("w4.lw"));
  EXPECT_EQ(ReadReports(folder_).verdict, "not conformant");
}

TEST_F(ShardFolders, OneThatIsMissingOrThereTwiceIsRefused) {
  Write("1/3", Passing("w1.ddp"));
  Write("3/3", Passing("w2.ddp"));
  ExpectRefusal("the report of shard 2/3 is missing");
  Write("1/3", Passing("w4.ddp"));
  ExpectRefusal("shard 1/3 is there twice");
}

TEST_F(ShardFolders, WhatIsNoShardIsRefused) {
  for (const char* shard : {"", "1/", "1/x", "1/999999"}) {
    Write(shard, Passing("w8.ddp"));
    ExpectRefusal("is of no shard");
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(ShardFolders, ARefusalNamesBothReports) {
  Write("", Passing("w2.ddp"));
  ExpectRefusal("1/report.jsonl is of no shard");
  Write("1/8", Passing("w4.ddp"));
  ExpectRefusal("1/report.jsonl and " + (folder_ / "2").string() +
                "/report.jsonl are no shards of one run");
}

// Each of another list of cases, or of another engine: together they show nothing of either.
TEST_F(ShardFolders, OfOtherRunsAreRefusedByWhatDiffers) {
  struct Row {
    const char* why;
    std::function<void(RunReport&)> change;
  };
  const Row rows[] = {
      {"run: engine lib:<x> and lib:y", [](RunReport& r) { r.impl = "lib:y"; }},
      {"run: fabric sim and mpi", [](RunReport& r) { r.fabric = "mpi"; }},
      {"run: profile core and full", [](RunReport& r) { r.profile = "full"; }},
      {"run: asked none and 2 cases", [](RunReport& r) { r.asked = "2 cases"; }},
      {"run: select none and w2* w4*",
       [](RunReport& r) {
         r.select = {"w4*", "w2*"};
       }},
      {"run: exclude none and w8*", [](RunReport& r) { r.exclude = {"w8*"}; }},
      {"run: options none and --level order", [](RunReport& r) { r.options = {"--level order"}; }},
      {"run: fault none and mark:1:drop@0", [](RunReport& r) { r.fault = "mark:1:drop@0"; }},
      {"run: strict no and yes", [](RunReport& r) { r.strict = true; }},
      {"run: assurance observed and reported", [](RunReport& r) { r.assurance = "reported"; }},
      {"run: name of the engine mine 1 and mine 2", [](RunReport& r) { r.engine = "mine 2"; }},
      {"run: fault none and mark:1:drop@0; seed 1 and 7",
       [](RunReport& r) { r.fault = "mark:1:drop@0", r.seed = 7; }}};
  for (const Row& row : rows) {
    RunReport one = Report({Passing("w2.ddp")}), other = Report({Passing("w4.ddp")});
    one.engine = other.engine = "mine 1";
    one.shard = "1/2";
    other.shard = "2/2";
    row.change(other);
    written_ = 0;
    Write(one);
    Write(other);
    ExpectRefusal(row.why);
    std::filesystem::remove_all(folder_);
  }
}

// In another order the same is chosen; an engine that did not load has no name.
TEST_F(ShardFolders, OfOneRunMayBeWrittenInAnotherWay) {
  RunReport one = Report({Passing("w2.ddp")}), other = Report({Failing("w4.ddp")});
  one.shard = "1/2";
  other.shard = "2/2";
  one.engine = "mine 1";
  one.select = {"w2*", "w4*"};
  other.select = {"w4*", "w2*"};
  Write(one);
  Write(other);
  EXPECT_EQ(ReadReports(folder_).verdict, "not conformant");
}

}  // namespace
}  // namespace shardproof
