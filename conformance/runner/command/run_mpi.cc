#include "conformance/runner/command/run_mpi.h"

#include <functional>
#include <iostream>
#include <vector>

#include "conformance/common/safe_text.h"
#include "conformance/fabric/mpi/mpi_world.h"
#include "conformance/fabric/nccl/rendezvous/meet_over_mpi.h"
#include "conformance/runner/command/mpi_judge.h"
#include "conformance/runner/host_facts.h"
#include "conformance/runner/job/job_run.h"
#include "conformance/runner/nccl/run_nccl.h"

namespace shardproof {

namespace {

// On all ranks: HostsLine. Throws JobRefused, on all, where hosts disagree.
std::string CompareHosts(const Options& options, MpiWorld& world) {
  const std::vector<std::string> by_rank = world.Gather(PackFacts(FactsHere(options.impl)));
  std::string problem, line;
  if (world.rank() == 0) {
    try {
      problem = HostsDisagree(by_rank, options.impl);
      line = HostsLine(by_rank);
    } catch (const std::runtime_error& error) {
      problem = error.what();
    }
  }
  if (problem = world.Broadcast(problem); !problem.empty()) throw JobRefused(problem);
  return world.Broadcast(line);
}

// What comes of a run in this world, as an exit code.
int CodeOf(MpiWorld& world, const std::function<int()>& run) {
  try {
    return run();
  } catch (const JobRefused& error) {  // the same on all ranks, which leave together
    if (world.rank() == 0) std::cerr << "shardproof: " << IndentedText(error.what()) << "\n";
    return 3;
  }
}

}  // namespace

int RunMpiCommand(const Options& given, int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  Options options = given;
  options.ranks = world.size();
  int code = 2;
  try {
    code = CodeOf(world, [&] {
      const std::string hosts = CompareHosts(options, world);
      MpiJudge judge(options, world);
      return RunInJob(options, judge,
                      hosts.empty() ? std::vector<std::string>{} : std::vector{hosts});
    });
  } catch (const std::exception& error) {  // the other ranks wait for this one
    std::cerr << "shardproof: rank " << world.rank()
              << ": the suite failed: " << IndentedText(error.what()) << std::endl;
    world.Abort(2);
  }
  return world.Leave(code);
}

int RunNcclUnderMpi(const Options& options, const NcclKit& kit, int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  int code = 2;
  try {
    code = CodeOf(world, [&] {
      CompareHosts(options, world);
      return RunNcclCommand(options, kit, MeetOverMpi(world));
    });
  } catch (const std::exception& error) {
    if (world.rank() == 0)
      std::cerr << "shardproof: the suite failed: " << IndentedText(error.what()) << "\n";
  }
  return world.Leave(code);
}

}  // namespace shardproof
