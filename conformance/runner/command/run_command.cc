#include "conformance/runner/command/run_command.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "conformance/fabric/nccl/rendezvous/environment.h"
#include "conformance/report/report_folder.h"
#include "conformance/runner/command/launched.h"
#include "conformance/runner/command/run_sim.h"
#include "conformance/runner/fabric_row.h"
#include "conformance/runner/last_failed.h"
#include "conformance/runner/nccl/run_nccl.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/sim_run.h"
#include "conformance/runner/support/fitted_run.h"

namespace shardproof {

namespace {

// Which cases are asked is said in one way.
void CheckChoice(const Options& options) {
  if (options.profile_given &&
      (options.random > 0 || !options.cases.empty() || !options.last_failed.empty()))
    throw std::invalid_argument(
        "--profile names cases: leave --case, --random and --last-failed out, or --profile");
  if (options.random > 0 && options.fabric == "dry")
    throw std::invalid_argument("--random is of the fabrics sim, mpi and nccl, not of dry");
  if (options.random > 0 && !options.cases.empty())
    throw std::invalid_argument("--random draws cases: leave --case out");
  const bool chooses =
      !options.select.empty() || !options.exclude.empty() || !options.shard.empty();
  if (chooses && (options.random > 0 || !options.cases.empty()))
    throw std::invalid_argument(
        "--select, --exclude and --shard choose from a profile: leave --random and --case out");
  if (options.list && options.random > 0)
    throw std::invalid_argument("--list lists cases of a profile: leave --random out");
}

// Options that the fabric does not have.
void CheckFabric(const Options& options) {
  const FabricRow& fabric = FabricNamed(options.fabric);
  const auto refuse = [&](const char* option, const char* of) {
    throw std::invalid_argument(std::string(option) + " is of the " + of + " fabric, not of " +
                                options.fabric);
  };
  if (!fabric.replays && options.queues > 0) refuse("--queues", "sim");
  if (!fabric.replays && options.timings > 1) refuse("--timings", "sim");
  if (!fabric.replays && !options.timing.empty()) refuse("--timing", "sim");
  const Options usual;
  if (!fabric.starts_ranks && options.gemm != usual.gemm) refuse("--gemm", "nccl");
  if (!fabric.starts_ranks && options.case_seconds != usual.case_seconds)
    refuse("--case-seconds", "nccl");
  if (!fabric.starts_ranks && options.ranks > 0) {
    throw std::invalid_argument("--ranks is of the nccl fabric, not of " + options.fabric +
                                fabric.ranks_instead);
  }
}

// A run may take an hour: what is wrong with the command is said before it.
void CheckOptions(const Options& options) {
  if (!options.waivers.empty() && options.fabric != "mpi") WaiversOf(options);  // mpi: on rank 0
  if (!options.supports.empty() && !IsFitted(options))
    throw std::invalid_argument(
        "--supports says what the profiles core and full combine, and what --random draws from, on "
        "sim, mpi and nccl: leave it out here");
  if (!options.fault.empty() && options.impl.starts_with("trace:"))
    throw std::invalid_argument("--fault is of a run; " + options.impl + " was recorded already");
  if (!options.timing.empty()) ParseTimingPolicy(options.timing);
  CheckFabric(options);
}

// A job of a launcher, of mpirun, or one that is started here.
int RunOnGpus(const Options& options, const OtherFabrics& others, int argc, char** argv) {
  const std::optional<Meeting> launched = JobFromEnvironment(std::getenv);
  if (!others.nccl.open) return RunNcclCommand(options, others.nccl, nullptr);  // says so
  if (launched) return RunNcclCommand(options, others.nccl, Store::Meet(*launched));
  const bool mpirun = std::getenv("PMI_RANK") != nullptr ||
                      std::getenv("OMPI_COMM_WORLD_RANK") != nullptr ||
                      std::getenv("PMIX_RANK") != nullptr;
  if (!mpirun) return RunNcclCommand(options, others.nccl, nullptr);
  if (others.nccl_under_mpi) return others.nccl_under_mpi(options, others.nccl, argc, argv);
  throw std::invalid_argument(
      "mpirun started this shardproof, which was built without MPI: use shardproof_gpu_mpi, or "
      "start it once (--ranks), or "
      "give each process RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
}

// How many processes a launcher of MPI programs says that it started; 0: no launcher did.
int StartedByMpirun() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* size = std::getenv(name); size != nullptr) return std::max(1, std::atoi(size));
  }
  return std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr ? 1 : 0;
}

// The cases of a run: under a launcher those of its ranks, and once.
int List(const Options& options) {
  if (!IsFirstProcess()) return 0;
  Options list = options;
  list.target = "cases";
  if (options.fabric == "mpi" && list.ranks == 0) list.ranks = StartedByMpirun();
  return ListCommand(list);
}

int RunHere(const Options& options, const OtherFabrics&, int, char**) {
  if (const int ranks = StartedByMpirun(); ranks > 1) {
    throw std::invalid_argument("mpirun started " + std::to_string(ranks) +
                                " processes, and each would run all ranks by itself: say --fabric "
                                "mpi, or start shardproof without mpirun");
  }
  return RunSimCommand(options);
}

int RunUnderMpi(const Options& options, const OtherFabrics& others, int argc, char** argv) {
  if (others.mpi && StartedByMpirun() == 0) {
    throw std::invalid_argument(
        "--fabric mpi has a process for each rank: start it as mpirun -n 8 shardproof run --fabric "
        "mpi ...");
  }
  if (others.mpi) return others.mpi(options, argc, argv);
  throw std::invalid_argument("--fabric mpi: this shardproof was built without MPI");
}

// How each row of fabric_row.cc runs.
struct FabricRun {
  std::string_view fabric;
  int (*run)(const Options& options, const OtherFabrics& others, int argc, char** argv);
};
constexpr FabricRun kRuns[] = {
    {"sim", RunHere}, {"dry", RunHere}, {"mpi", RunUnderMpi}, {"nccl", RunOnGpus}};

}  // namespace

void VoidOldReport(const Options& options) {
  // The other ranks of a launcher read what --last-failed names by themselves, maybe later, and
  // maybe it is the same folder.
  if (options.report.empty() || options.list || !options.last_failed.empty()) return;
  if (WritesReport(options)) VoidReport(options.report);
}

int RunCommand(const Options& given, const OtherFabrics& others, int argc, char** argv) {
  CheckChoice(given);
  const Options options = WithLastFailed(given);
  CheckOptions(options);
  if (options.impl.starts_with("trace:")) {
    Options check = options;
    check.target = options.impl;
    return CheckCommand(check);
  }
  if (options.list) return List(options);
  for (const FabricRun& row : kRuns) {
    if (options.fabric == row.fabric) return row.run(options, others, argc, argv);
  }
  throw std::invalid_argument("fabric " + options.fabric + ": there is none");
}

}  // namespace shardproof
