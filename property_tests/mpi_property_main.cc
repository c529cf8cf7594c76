// Under mpirun: the reference in random cases on real processes. All ranks draw the same case, run
// it, hear rank 0's verdict, and shrink together.
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "conformance/fabric/mpi/mpi_world.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/rank_main.h"
#include "property_tests/lockstep.h"

namespace shardproof {
namespace {

class MpiRanks : public RankAgreement {
 public:
  explicit MpiRanks(MpiWorld& world) : world_(world) {}
  int rank() const override { return world_.rank(); }
  uint64_t FromRankZero(uint64_t value) override {
    return std::stoull(world_.Broadcast(std::to_string(value)));
  }
  bool OnAllRanks(bool holds) override {
    int mine = holds ? 1 : 0, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all != 0;
  }

 private:
  MpiWorld& world_;
};

std::string DescribeEnd(const RankEnd& end, int32_t rank) {
  return "rank " + std::to_string(rank) + " did not return: " + end.detail;
}

// Empty: conforms.
std::string Complaint(const Case& c, const CaseEnd& end) {
  Run run;
  for (int32_t rank = 0; rank < c.world; ++rank) {
    const RankEnd& ended = end.ranks[static_cast<size_t>(rank)];
    if (!ended.returned) return DescribeEnd(ended, rank) + end.hang_report;
    RankOutput output = Unpack(ended.blob, rank, c);
    run.traces.push_back(std::move(output.trace));
    run.outcomes.push_back(std::move(output.outcome));
  }
  const Verdict verdict = JudgeRun(c, run);
  if (verdict.outcome == Outcome::kPass) return "";
  if (verdict.result.findings.empty()) return "not judged: " + verdict.reason;
  const Finding& first = verdict.result.findings.front();
  return first.requirement + " on rank " + std::to_string(first.rank) + ": " + first.message;
}

// A folder for checkpoints that all ranks see.
class SharedFolder {
 public:
  explicit SharedFolder(MpiWorld& world) : owner_(world.rank() == 0) {
    std::string name = (std::filesystem::temp_directory_path() / "mpi_property_XXXXXX").string();
    if (owner_ && mkdtemp(name.data()) == nullptr) name.clear();
    path_ = world.Broadcast(name);
    if (path_.empty()) throw std::runtime_error("no temporary folder");
  }
  ~SharedFolder() {
    std::error_code ignored;
    if (owner_) std::filesystem::remove_all(path_, ignored);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  // One for each case; made by the first rank that asks.
  std::string Next() {
    const std::string path = path_ + "/" + std::to_string(count_++);
    std::filesystem::create_directories(path);
    return path;
  }

 private:
  std::string path_;
  bool owner_ = false;
  int count_ = 0;
};

bool CheckReference(MpiWorld& world, int evaluations) {
  const Plugin plugin("builtin:reference");
  SharedFolder folder(world);
  const auto holds = [&](const Case& c) {
    const Models models = MakeModels(c);
    RankOptions options;
    options.folder = folder.Next();
    const CaseEnd end = world.RunCase(c.world, {}, [&](Fabric& fabric) {
      return Pack(RunRank(fabric, c, models, plugin, options));
    });
    const std::string mine = world.rank() == 0 ? Complaint(c, end) : "";
    const std::string complaint = world.Broadcast(mine);
    if (!complaint.empty() && world.rank() == 0)
      std::cerr << Id(c) << ": " << complaint << std::endl;
    return complaint.empty();
  };
  std::vector<int32_t> worlds;
  for (int32_t ranks : {1, 2, 3, 4, 5, 6, 8}) {
    if (ranks <= world.size()) worlds.push_back(ranks);
  }
  MpiRanks ranks(world);
  PropertyOptions options;
  options.evaluations = evaluations;
  if (!CheckInLockstep("the reference conforms on processes", ranks,
                       GenCase(std::make_shared<const CaseSpace>(worlds)), holds, options))
    return false;
  std::vector<int32_t> even;
  for (int32_t ranks_of_case : {2, 4, 8}) {
    if (ranks_of_case <= world.size()) even.push_back(ranks_of_case);
  }
  options.evaluations = (evaluations + 1) / 2;
  return even.empty() ||
         CheckInLockstep("experts conform on processes", ranks,
                         GenCase(std::make_shared<const ScheduleSpace>(even)), holds, options);
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) {
  shardproof::MpiWorld world(&argc, &argv);
  return shardproof::CheckReference(world, argc > 1 ? std::atoi(argv[1]) : 12) ? 0 : 1;
}
