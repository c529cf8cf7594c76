#include "conformance/runner/sim_run.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "conformance/fabric/in_device_work.h"

namespace shardproof {

namespace {
struct TimingPolicyRow {
  TimingPolicy policy;
  const char* name;
};
constexpr TimingPolicyRow kTimingPolicies[] = {{TimingPolicy::kEager, "eager"},
                                               {TimingPolicy::kLazyComm, "lazy-comm"},
                                               {TimingPolicy::kLazyCompute, "lazy-compute"},
                                               {TimingPolicy::kRandom, "random"},
                                               {TimingPolicy::kPct, "pct"}};

// What failed in the suite, on the first rank where it did or in the simulation; empty: nothing.
std::string Simulate(int32_t world, const SimOptions& options, SimResult* result,
                     const std::function<void(Fabric&)>& rank_main) {
  std::string broken;
  try {
    *result = RunSim(world, options, [&](Fabric& fabric) {
      try {
        rank_main(fabric);
      } catch (const std::exception& error) {
        if (broken.empty()) broken = error.what();
      }
    });
  } catch (const std::exception& error) {
    broken = kInTheSuite + std::string(", in the simulation: ") + error.what();
  }
  return broken;
}

}  // namespace

const char* TimingPolicyName(TimingPolicy policy) {
  for (const TimingPolicyRow& row : kTimingPolicies) {
    if (row.policy == policy) return row.name;
  }
  return "?";
}

TimingPolicy ParseTimingPolicy(const std::string& name) {
  for (const TimingPolicyRow& row : kTimingPolicies) {
    if (name == row.name) return row.policy;
  }
  throw std::invalid_argument("timing \"" + name +
                              "\" is none of eager, lazy-comm, lazy-compute, random, pct");
}

RunCase RunHere(const Plugin& plugin) {
  return [&plugin](const Case& c, const SimRunOptions& options) {
    if (options.on_file_operation || options.rank.end_after_saves > 0)
      throw std::runtime_error("a run can be cut in a process of its own only");
    return RunOnSim(c, MakeModels(c), plugin, options);
  };
}

RunData RunLegs(const std::vector<Case>& legs, const RunCase& run, const SimRunOptions& options) {
  RunData data;
  for (const Case& leg : legs) {
    data = run(leg, options);
    if (std::any_of(data.run.outcomes.begin(), data.run.outcomes.end(),
                    [](const auto& outcome) { return outcome.kind != EngineOutcome::Kind::kOk; }))
      break;
  }
  return data;
}

RunData RunOnSim(const Case& c, const Models& models, const Plugin& plugin,
                 const SimRunOptions& options) {
  RunData data;
  // A run finds no checkpoint but of the legs before it: what an engine does may depend on what is
  // in the folder.
  const bool begins = c.before.empty() && !options.rank.folder.empty();
  for (size_t i = 0; i < c.instances.size() && begins; ++i)
    std::filesystem::remove_all(options.rank.folder + "/" + std::to_string(i));
  const auto world = static_cast<size_t>(c.world);
  data.run.spec = &c;
  data.run.traces.resize(world);
  data.run.outcomes.resize(world);
  for (size_t rank = 0; rank < world; ++rank) {
    data.run.traces[rank].rank = static_cast<int32_t>(rank);
    data.run.traces[rank].world = c.world;
  }
  SimOptions sim;
  sim.seed = options.seed;
  sim.policy = options.policy;
  sim.drift = options.drift;
  sim.queues = options.queues > 0 ? options.queues : QueuesOf(c);
  sim.on_start = options.on_start;
  if (Progress* progress = options.rank.progress; progress != nullptr)
    sim.on_device_step = [progress] { progress->beats.fetch_add(1, std::memory_order_relaxed); };
  sim.stack_bytes = std::max<uint32_t>(plugin.table().stack_bytes, 512u << 10);
  std::vector<bool> finished(world, false);
  SimResult result;
  const std::string broken = Simulate(c.world, sim, &result, [&](Fabric& fabric) {
    RankOutput output = RunRank(fabric, c, models, plugin, options.rank);
    const auto rank = static_cast<size_t>(fabric.rank());
    data.run.traces[rank] = std::move(output.trace);
    data.run.outcomes[rank] = std::move(output.outcome);
    finished[rank] = true;
  });
  if (options.rank.progress != nullptr)
    options.rank.progress->Enter(-1);  // no engine code from here on
  if (!broken.empty()) throw std::runtime_error(broken);
  data.deadlock = result.deadlock;
  data.timing_hash = result.timing_hash;
  data.notes = result.mismatches;
  for (size_t rank = 0; rank < world; ++rank) {
    EngineOutcome& outcome = data.run.outcomes[rank];
    const std::string blocked = rank < result.blocked.size() ? result.blocked[rank] : std::string();
    if (!finished[rank]) {
      outcome = {EngineOutcome::Kind::kDied, "the run",
                 rank < result.errors.size() ? result.errors[rank] : ""};
    }
    if (rank < result.threw.size() && !result.threw[rank].empty())
      outcome = {EngineOutcome::Kind::kDied, "device work", result.threw[rank]};
    if (result.deadlock && !blocked.empty()) {
      outcome.kind = EngineOutcome::Kind::kHung;
      outcome.reason = blocked;
    }
  }
  return data;
}

}  // namespace shardproof
