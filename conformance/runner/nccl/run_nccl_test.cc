// Whole runs with rank processes, the reference engine, and a machine that needs no GPU.
#include "conformance/runner/nccl/run_nccl.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "conformance/fabric/nccl/rendezvous/testing.h"
#include "conformance/runner/nccl/process_fabric_for_test.h"
#include "conformance/runner/nccl/three_cases_for_test.h"

namespace shardproof {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

struct Reported {
  int code = -1;
  std::string output;  // of the console
  std::map<std::string, json> cases;
  json head;
};

Reported RunWith(Options options, const ProcessHooks& hooks = {},
                 std::unique_ptr<Store> job = nullptr) {
  const TestFolder folder;
  options.fabric = "nccl";
  options.report = folder.path();
  Reported reported;
  ::testing::internal::CaptureStdout();
  try {
    reported.code = RunNcclCommand(options, ProcessKitForTest(hooks), std::move(job));
  } catch (...) {
    ::testing::internal::GetCapturedStdout();
    throw;
  }
  reported.output = ::testing::internal::GetCapturedStdout();
  std::ifstream in(folder.path() + "/report.jsonl");
  for (std::string line; std::getline(in, line);) {
    const json row = json::parse(line);
    if (row.contains("case")) reported.cases[row["case"]] = row;
  }
  return reported;
}

Options Of(const std::vector<std::string>& cases, double stall_seconds = 60) {
  Options options;
  options.cases = cases;
  options.stall_seconds = stall_seconds;
  return options;
}

std::string Status(const Reported& reported, const std::string& id) {
  return reported.cases.count(id) == 0 ? "not there"
                                       : reported.cases.at(id)["status"].get<std::string>();
}

TEST(RunNccl, CasesOfOneAndTwoRanksPass) {
  const std::vector<std::string> ids = {"w2.ddp",
                                        "w1.zero3",
                                        "w2.zero3.k2.adamw",
                                        "w2.zero2.ep2.k2.moe4",
                                        "w2.lw.ogr.opg.adamw.lr0p0625",
                                        "w2.zero3.twin.bf16"};
  const Reported reported = RunWith(Of(ids));
  EXPECT_EQ(reported.code, 0) << reported.output;
  for (const std::string& id : ids)
    EXPECT_EQ(Status(reported, id), "pass") << id << " " << reported.output;
  EXPECT_THAT(reported.output,
              HasSubstr("device: none, products by fp32 on paper; local ranks: 2"));
  EXPECT_THAT(reported.output, HasSubstr("ranks: 2 processes started here, 2 in all"));
}

TEST(RunNccl, FourRanks) {
  Options options = Of({"w4.zero1.k2", "w3.zero2.k2.tied"});
  options.ranks = 4;
  EXPECT_EQ(RunWith(options).code, 0);
}

TEST(RunNccl, ALaterLegLoadsWhatTheOneBeforeItSaved) {
  const std::string id = "w2.zero3.k2.adamw.do=tts.then.w1.zero1.k4.adamw.do=ltt";
  const Reported reported = RunWith(Of({id, "w2.ddp"}));
  EXPECT_EQ(reported.code, 0) << reported.output;
  EXPECT_EQ(Status(reported, id), "pass") << reported.output;
  EXPECT_EQ(Status(reported, "w2.ddp"), "pass");
  EXPECT_EQ(reported.cases.size(), 2u);
}

TEST(RunNccl, TheLegThatFailsIsNamedAndDecides) {
  const std::string id = "w2.zero3.k2.do=ts.then.w2.zero1.k2.do=lt";
  Options options = Of({id}, 1);
  options.fault = "communicate:1:drop@1";  // in each leg
  const Reported reported = RunWith(options);
  EXPECT_EQ(Status(reported, id), "fail") << reported.output;
  EXPECT_THAT(reported.output, HasSubstr("leg 1"));
  EXPECT_THAT(reported.output, ::testing::Not(HasSubstr("leg 2")));
}

TEST(RunNccl, MaxFailEndsTheRun) {
  Options options = Of(kThree, 1);
  options.max_fail = 1;
  const Reported reported = RunWith(options, Bad([] { std::exit(0); }));
  EXPECT_EQ(reported.code, 1) << reported.output;
  EXPECT_EQ(Status(reported, kThree[1]), "fail") << reported.output;
  EXPECT_EQ(Status(reported, kThree[2]), "not there") << reported.output;
}

TEST(RunNccl, ATimeBudgetThatIsOverLeavesCasesOut) {
  Options options = Of(kThree);
  options.time_budget = 1e-9;
  const Reported reported = RunWith(options);
  EXPECT_EQ(reported.code, 4) << reported.output;
  EXPECT_EQ(reported.cases.size(), 1u) << "asked after each case";
}

TEST(RunNccl, ACaseOfMoreRanksIsAnErrorOfUsage) {
  try {
    RunWith(Of({"w2.ddp", "w4.zero1.k2"}));
    ADD_FAILURE();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("case w4.zero1.k2 needs 4 ranks, there are 2"));
  }
}

TEST(RunNccl, AnIllegalCaseIsRefusedByAllRanks) {
  EXPECT_EQ(Status(RunWith(Of({"w2.strategy=zero9"})), "w2.strategy=zero9"), "pass");
}

TEST(RunNccl, LevelsAndTraces) {
  for (const char* level : {"order", "digests", "bytes"}) {
    const TestFolder folder;
    Options options = Of({"w2.zero3"});
    options.level = level;
    options.trace = folder.path();
    const bool order = std::string_view(level) == "order";  // values are not recorded
    EXPECT_EQ(RunWith(options).code, order ? 4 : 0) << level;
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/w2.zero3"))
      files += entry.is_regular_file() ? 1 : 0;
    EXPECT_GE(files, 2) << level;
  }
  Options options = Of({"w2.zero3"});
  options.level = "off";
  EXPECT_EQ(Status(RunWith(options), "w2.zero3"), "not-checkable");
}

TEST(RunNccl, ReplayNamesFabricAndRanks) {
  EXPECT_EQ(RunWith(Of({"w2.ddp"})).cases.at("w2.ddp")["replay"],
            "shardproof run --verbose --impl builtin:reference --case w2.ddp --seed 1 --fabric "
            "nccl --ranks 2 --gemm fp32");
}

TEST(RunNccl, TheCoreProfilePassesAndTellsWhatItCovers) {
  Options options;
  options.stall_seconds = 60;
  const Reported reported = RunWith(options);
  EXPECT_EQ(reported.code, 0) << reported.output;
  EXPECT_GE(reported.cases.size(), 60u);
  for (const auto& [id, row] : reported.cases) EXPECT_EQ(row["status"], "pass") << id;
  EXPECT_THAT(reported.output, HasSubstr("pairs of knob values (worlds of at most 2): "));
  EXPECT_THAT(reported.output, HasSubstr("experts and schedules (world 2, ep "));
  EXPECT_THAT(reported.output, HasSubstr("values of layer-wise engines (world 2 1): "));
}

// ---- cases that depend on the engine

size_t CountOf(const Reported& reported, const std::string& status) {
  size_t count = 0;
  for (const auto& [id, row] : reported.cases) count += row["status"] == status ? 1 : 0;
  return count;
}

TEST(RunNccl, AnEngineThatDoesPartOfTheJobIsAskedEveryPairOfThat) {
  Options options;
  options.stall_seconds = 60;
  options.impl = "lib:conformance/examples/libddp.so";
  const Reported reported = RunWith(options);
  EXPECT_EQ(reported.code, 0) << reported.output;
  EXPECT_GE(CountOf(reported, "pass"), 40u) << reported.output;
  EXPECT_THAT(reported.output, HasSubstr("what the engine takes: asked in "));
  EXPECT_THAT(reported.output,
              ::testing::ContainsRegex("pairs of strategies: [0-9]+ judged, [0-9]+ possible"));
}

TEST(RunNccl, RandomCases) {
  Options options;
  options.stall_seconds = 60;
  options.random = 12;
  const Reported reported = RunWith(options);
  EXPECT_EQ(reported.code, 0) << reported.output;
  EXPECT_GE(CountOf(reported, "pass"), 12u) << reported.output;
  EXPECT_THAT(reported.output, HasSubstr("random cases of seeds 1 to 12"));
}

// The smallest case with the same finding is looked for.
TEST(RunNccl, ARandomCaseThatFailsIsShrunk) {
  Options options;
  options.stall_seconds = 60;
  options.random = 3;
  options.fault = "publish:1:drop@0";
  const Reported reported = RunWith(options);
  EXPECT_EQ(reported.code, 1) << reported.output;
  EXPECT_THAT(reported.output, HasSubstr("smallest case with it: "));
}

// Every case averages: some over 3 ranks.
TEST(RunNccl, WhatNcclDoesNotAverageToTheBitIsNotAsked) {
  Options options;
  options.stall_seconds = 60;
  options.ranks = 3;
  options.random = 30;
  options.supports = ::testing::TempDir() + "/averages.toml";
  std::ofstream(options.supports) << "[strategies]\naverage_in_collective = [\"1\"]\n";
  const Reported reported = RunWith(options);
  EXPECT_EQ(reported.code, 0) << reported.output;
  EXPECT_GE(CountOf(reported, "pass"), 10u) << reported.output;
  EXPECT_THAT(reported.output,
              ::testing::ContainsRegex("cases: [0-9]+ not asked because NCCL averages"));
}

TEST(RunNccl, CheckpointsThatAnotherConfigurationLoads) {
  Options options;
  options.stall_seconds = 60;
  options.profile = "reshard";
  options.shard = "1/8";
  const Reported reported = RunWith(options);
  EXPECT_EQ(reported.code, 0) << reported.output;
  EXPECT_GE(CountOf(reported, "pass"), 5u) << reported.output;
}

// ---- engines that do not come back

void ExpectOneFinding(const Reported& reported, const std::string& requirement,
                      const std::string& seen) {
  EXPECT_EQ(reported.code, 1) << reported.output;
  EXPECT_EQ(Status(reported, kThree[0]), "pass") << reported.output;
  EXPECT_EQ(Status(reported, kThree[1]), "fail");
  EXPECT_EQ(Status(reported, kThree[2]), "pass") << reported.output;
  const json& findings = reported.cases.at(kThree[1])["findings"];
  int found = 0;
  for (const json& finding : findings) {
    const std::string id = finding["requirement"];
    if (id == "GE-26" || id == "GE-27") {
      EXPECT_EQ(id, requirement) << finding;
      EXPECT_EQ(finding["rank"], 1) << finding;
      EXPECT_THAT(finding["seen"].get<std::string>(), HasSubstr(seen));
      ++found;
    }
  }
  EXPECT_EQ(found, 1) << findings;
}

TEST(RunNccl, ACrashIsAFindingOfItsRank) {
  ExpectOneFinding(
      RunWith(Of(kThree), Bad([] { *reinterpret_cast<volatile int*>(uintptr_t{0x34}) = 1; })),
      "GE-26",
      "died: ended by SIGSEGV (Segmentation fault): address 0x34; it was in engine code of "
      "train_step 0");
}
TEST(RunNccl, AnExitIsAFindingOfItsRank) {
  ExpectOneFinding(RunWith(Of(kThree), Bad([] { std::exit(0); })), "GE-26", "exit(0) was called");
}
// It is thrown below a host call, in the suite's own code: no failure of the engine.
TEST(RunNccl, AnExceptionOfTheSuiteIsAnErrorThatNamesItsRank) {
  const Reported reported = RunWith(Of(kThree), Bad([] { throw std::runtime_error("of no use"); }));
  EXPECT_EQ(reported.code, 2) << reported.output;
  EXPECT_EQ(Status(reported, kThree[0]), "pass") << reported.output;
  EXPECT_EQ(Status(reported, kThree[1]), "suite-error");
  EXPECT_EQ(Status(reported, kThree[2]), "pass") << reported.output;
  EXPECT_THAT(reported.output, HasSubstr("in the suite's code on rank 1: compute (rank 1, "
                                         "train_step 0): of no use"));
}
TEST(RunNccl, AnEndlessLoopIsAFindingOfItsRank) {
  ExpectOneFinding(RunWith(Of(kThree, 1), Bad([] {
                             volatile bool forever = true;
                             while (forever) {
                             }
                           })),
                   "GE-27", "no progress: without progress for");
}

TEST(RunNccl, SleepingForEverIsAFindingOfItsRank) {
  ExpectOneFinding(RunWith(Of(kThree, 0.5), Bad([] { pause(); })), "GE-27",
                   "no progress: without progress for");
}

TEST(RunNccl, RanksThatWaitForEachOtherHang) {
  Options options = Of({"w2.ddp", "w2.zero1"}, 1);
  options.fault = "communicate:0:drop@1";
  const Reported reported = RunWith(options);
  EXPECT_EQ(Status(reported, "w2.ddp"), "fail") << reported.output;
  std::string seen;
  for (const json& finding : reported.cases.at("w2.ddp")["findings"]) {
    if (finding["requirement"] == "GE-27") seen += finding["seen"].get<std::string>();
  }
  EXPECT_THAT(seen, HasSubstr("hung: rank 0 waits for others in"));
}

// ---- what is wrong before anything runs

TEST(RunNccl, ADeviceThatIsNotThere) {
  const ProcessHooks hooks = {[](const RankMachineOptions& options) {
                                if (options.rank == 1) throw std::runtime_error("no CUDA device");
                              },
                              nullptr};
  EXPECT_THROW(RunWith(Of({"w2.ddp"}), hooks), std::invalid_argument);
  EXPECT_THAT(ErrorOf([&] { RunWith(Of({"w2.ddp"}), hooks); }),
              HasSubstr("cases cannot run on this machine: rank 1 could not start: the process "
                        "left before the run was over, "
                        "with exit code 1: no CUDA device"));
}
TEST(RunNccl, AProgramWithoutCuda) {
  EXPECT_THAT(ErrorOf([] { RunNcclCommand(Of({"w2.ddp"}), {}, nullptr); }),
              HasSubstr("built without CUDA and NCCL"));
}

}  // namespace
}  // namespace shardproof
