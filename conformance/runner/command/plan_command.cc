// plan: what does one rank of an engine say that it will issue in a train step?
#include <iostream>
#include <optional>

#include "conformance/runner/command/run_command.h"
#include "conformance/runner/plugin.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/selection.h"

namespace shardproof {

int PlanCommand(const Options& options) {
  const Plugin plugin(options.impl);
  if (plugin.plan() == nullptr) {
    throw std::invalid_argument(options.impl +
                                " says nothing about its plans: spf_plugin.plan is NULL");
  }
  Case c = ParseId(options.cases.front());
  if (options.rank >= c.world) {
    throw std::invalid_argument("--rank " + std::to_string(options.rank) + ": " + Id(c) + " has " +
                                std::to_string(c.world) + " ranks");
  }
  const Models models = MakeModels(c);
  const ScratchFolder scratch;
  SimRunOptions sim = SimOptionsFor(options, Id(c), scratch.path());
  std::optional<std::string> text;  // of the rank's first engine
  sim.rank.on_created = [&](int32_t rank, spf_engine* engine) {
    if (rank != options.rank || text) return;
    const char* plan = plugin.plan()(engine, options.step, options.verbose ? 1 : 0);
    text = plan == nullptr ? "" : plan;
  };
  for (InstanceSpec& spec : c.instances) spec.script.clear();  // create and destroy
  const RunData data = RunOnSim(c, models, plugin, sim);
  const EngineOutcome& outcome = data.run.outcomes[static_cast<size_t>(options.rank)];
  if (!text) {
    std::cerr << "shardproof: rank " << options.rank << " has no engine that could be asked: "
              << (outcome.reason.empty() ? "create was not called on it" : outcome.reason) << "\n";
    return 1;
  }
  std::cout << *text;
  return 0;
}

}  // namespace shardproof
