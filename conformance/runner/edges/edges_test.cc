// edges_test: is each synchronisation of a run either missed when it is gone, or proved to be
// implied by others?
#include "conformance/runner/edges/edges.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

#include "conformance/runner/plugin.h"

namespace shardproof {
namespace {

SimRunOptions Options(const std::string& name) {
  SimRunOptions options;
  options.rank.folder = testing::TempDir() + "edges/" + name;
  std::filesystem::create_directories(options.rank.folder);
  return options;
}

class Edges : public testing::TestWithParam<const char*> {};

TEST_P(Edges, AreEachMissedOrProvedToBeImplied) {
  const Plugin plugin("builtin:reference");
  const Case c = ParseId(GetParam());
  const RunCase run = RunHere(plugin);
  const EdgeReport report(c, run, Options(GetParam()), 0);
  std::map<EdgeKind, int> counts;
  for (size_t i = 0; i < report.size(); ++i) {
    const EdgeRow row = report.Judge(i, run);
    ++counts[row.kind];
    std::cout << std::left << std::setw(16) << row.call + ":" + std::to_string(row.nth) << " #"
              << std::setw(5) << row.event << std::setw(14) << row.stream << std::setw(15)
              << EdgeKindName(row.kind) << row.text.substr(0, 300) << '\n';
    EXPECT_NE(row.kind, EdgeKind::kNotCovered)
        << GetParam() << " --fault " << row.call << ":" << row.nth << ":drop@0: " << row.text;
    EXPECT_FALSE(row.text.empty());
  }
  EXPECT_EQ(report.untried(), 0u) << "synchronisations were not tried";
  EXPECT_GT(counts[EdgeKind::kNeeded], 10);
  for (const auto& [kind, n] : counts) std::cout << n << ' ' << EdgeKindName(kind) << '\n';
}

TEST(EdgesOfWhatIsNoGoodRun, AreRefused) {
  const Plugin plugin("builtin:reference");
  const RunCase run = RunHere(plugin);
  const auto why = [&](const char* id, int32_t rank, const char* fault) {
    const Case c = ParseId(id);
    SimRunOptions options = Options("refused");
    if (*fault != '\0') options.rank.fault = ParseFault(fault);
    try {
      EdgeReport(c, run, options, rank);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_EQ(why("w2.ddp", 1, ""), "taken");
  EXPECT_EQ(why("w2.ddp", 2, ""), "--rank 2: the case has 2 ranks");
  EXPECT_NE(why("w2.zero3.do=ts.then.w2.zero3.do=lt", 0, "").find("several legs"),
            std::string::npos);
  EXPECT_NE(why("w2.ddp", 0, "communicate:1:drop@0").find("fails as it is, by FS-01"),
            std::string::npos)
      << why("w2.ddp", 0, "communicate:1:drop@0");
}

INSTANTIATE_TEST_SUITE_P(Cases, Edges,
                         testing::Values("w4.zero3.n2.twin.k2.do=tt",
                                         "w4.zero3.n2.hfsdp.twin.clip1.do=ts",
                                         "w4.zero3.twin.ep2.k2.do=t.moe4.shared.1f1b.dw",
                                         "w4.lw.k2.ogr.opg.bs1000.adamw.do=tt",
                                         "w4.lw.ogr.opg.bs1000.muon.do=tt.bcast.gradbuf",
                                         "w4.lw.ogr.opg.bs1000.adamw.norm.do=tt.aligned"));

}  // namespace
}  // namespace shardproof
