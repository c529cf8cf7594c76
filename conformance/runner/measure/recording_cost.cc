// What does recording cost on the mpi fabric? Under mpirun, with the number of rounds as argument.
//
// The same cases run with recording off, in order only, and with digests, one after the other in
// one job, so that a busy machine disturbs all levels alike; over six rounds they take turns in
// every order. Ratios are formed within a round. Two clocks: run time (what a user waits for, the
// slowest rank) and processor time of all ranks. Ranks sleep while they wait, so processor time is
// work alone: it hardly depends on the machine's load, and recording cannot hide in waiting times.
#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/fabric/mpi/mpi_world.h"
#include "conformance/runner/rank_main.h"

namespace shardproof {
namespace {

constexpr size_t kLevels = 3;
constexpr const char* kLevelNames[kLevels] = {"off", "order", "digests"};
using Times = std::array<EngineTime, kLevels>;  // by RecordLevel

// The slowest rank's run time, everybody's processor time. Nothing is known on ranks other than 0.
EngineTime Measure(MpiWorld& world, const Case& c, const Models& models, const Plugin& plugin,
                   RecordLevel level) {
  RankOptions options;
  options.level = level;
  options.start_together = true;
  const CaseEnd end = world.RunCase(c.world, {}, [&](Fabric& fabric) {
    const RankOutput output = RunRank(fabric, c, models, plugin, options);
    if (output.outcome.kind != EngineOutcome::Kind::kOk)
      throw std::runtime_error(output.outcome.reason);
    std::ostringstream text;
    text << output.time.seconds << ' ' << output.time.processor_seconds;
    return text.str();
  });
  EngineTime sum;
  if (world.rank() != 0) return sum;
  for (const RankEnd& rank : end.ranks) {
    EngineTime time;
    if (!(std::istringstream(rank.blob) >> time.seconds >> time.processor_seconds)) {
      throw std::runtime_error(Id(c) + ": " + rank.detail);
    }
    sum.seconds = std::max(sum.seconds, time.seconds);
    sum.processor_seconds += time.processor_seconds;
  }
  return sum;
}

std::vector<Case> CasesFor(int ranks) {
  std::vector<Case> cases;
  for (const char* engine : {"zero3.twin.k2", "zero2.k2", "ddp.k2"}) {
    cases.push_back(ParseId("w" + std::to_string(ranks) + "." + engine + ".do=tttttttttttt"));
  }
  return cases;
}

Times Round(MpiWorld& world, const std::vector<Case>& cases, const std::vector<Models>& models,
            const Plugin& plugin, const std::array<size_t, kLevels>& order) {
  Times times;
  for (size_t i = 0; i < cases.size(); ++i) {
    for (const size_t level : order) {
      const EngineTime one =
          Measure(world, cases[i], models[i], plugin, static_cast<RecordLevel>(level));
      times[level].seconds += one.seconds;
      times[level].processor_seconds += one.processor_seconds;
    }
  }
  return times;
}

void Print(const char* what, double EngineTime::*clock, const std::vector<Times>& rounds) {
  for (size_t level = 1; level < kLevels; ++level) {
    std::vector<double> ratios;
    for (const Times& times : rounds) ratios.push_back(times[level].*clock / times[0].*clock);
    std::sort(ratios.begin(), ratios.end());
    const auto at = [&](double share) {
      return ratios[static_cast<size_t>(share * double(ratios.size() - 1))];
    };
    std::printf("%s, %s to off: median %.3f, quartiles %.3f to %.3f\n", what, kLevelNames[level],
                at(0.5), at(0.25), at(0.75));
  }
}

void RunRounds(MpiWorld& world, int n_rounds) {
  const Plugin plugin("builtin:reference");
  const std::vector<Case> cases = CasesFor(world.size());
  std::vector<Models> models;
  for (const Case& c : cases) models.push_back(MakeModels(c));
  std::vector<Times> rounds;
  std::array<size_t, kLevels> order = {0, 1, 2};
  for (int round = 0; round < n_rounds; ++round) {
    rounds.push_back(Round(world, cases, models, plugin, order));
    std::next_permutation(order.begin(), order.end());
    if (world.rank() != 0) continue;
    std::printf("round %d:", round + 1);
    for (size_t level = 0; level < kLevels; ++level) {
      const EngineTime& time = rounds.back()[level];
      std::printf("  %s %.3f s (%.3f s of processors)", kLevelNames[level], time.seconds,
                  time.processor_seconds);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  if (world.rank() != 0) return;
  Print("run time", &EngineTime::seconds, rounds);
  Print("processor time", &EngineTime::processor_seconds, rounds);
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) {
  shardproof::MpiWorld world(&argc, &argv);
  shardproof::RunRounds(world, argc > 1 ? std::max(1, std::stoi(argv[1])) : 1);
}
