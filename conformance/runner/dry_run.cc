#include "conformance/runner/dry_run.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include "conformance/fabric/dry/dry_fabric.h"
#include "conformance/host/dry_executor.h"
#include "conformance/runner/rank_config.h"

namespace shardproof {
namespace {
constexpr int32_t kMostRanksOfIllegal = 512;  // many/judge_many.h judges legal cases
}

std::string NotForDry(const Case& c) {
  if (!c.before.empty() || c.killed) return "a leg goes on from what all ranks of another saved";
  if (c.starved) return "without memory a run is repeated and its numbers compared";
  if (!c.illegal.empty() && c.world > kMostRanksOfIllegal)
    return "what every rank must refuse is asked of at most " +
           std::to_string(kMostRanksOfIllegal) + " ranks";
  for (const InstanceSpec& spec : c.instances) {
    if (spec.script.find_first_of("sl") != std::string::npos)
      return "a checkpoint is written by all ranks together";
    if (MustFail(spec)) return "the step that must fail does so because of a number";
  }
  return "";
}

RankOutput RunDryRank(int32_t rank, const Case& c, const Models& models, const Plugin& plugin,
                      const SimRunOptions& options) {
  DryFabric fabric(rank, c.world);
  if (options.on_start) {
    options.on_start([&fabric](uint64_t address, std::string* text) {
      Place place;
      if (!fabric.arena().Describe(address, &place)) return false;
      *text = ToText(place);
      return true;
    });
  }
  RankOptions alone = options.rank;
  alone.level = RecordLevel::kOrder;
  alone.executor = [](Fabric&) { return std::make_shared<DryExecutor>(); };
  RankOutput output = RunRank(fabric, c, models, plugin, alone);
  output.trace.provides.results = true;  // what was published, without its values
  if (!fabric.threw().empty())
    output.outcome = {EngineOutcome::Kind::kDied, "device work", fabric.threw()};
  if (options.rank.progress != nullptr) options.rank.progress->Enter(-1);
  if (options.on_start) options.on_start(nullptr);  // what it refers to goes
  return output;
}

RunData RunDry(const Case& c, const Models& models, const Plugin& plugin,
               const SimRunOptions& options) {
  if (const std::string why = NotForDry(c); !why.empty())
    throw std::runtime_error("case " + Id(c) + " on the dry fabric: " + why);
  RunData data;
  data.run.spec = &c;
  const CaseFamilies families(c);
  SimRunOptions shared = options;
  shared.rank.families = &families;
  for (int32_t rank = 0; rank < c.world; ++rank) {
    RankOutput output = RunDryRank(rank, c, models, plugin, shared);
    data.run.traces.push_back(std::move(output.trace));
    data.run.outcomes.push_back(std::move(output.outcome));
  }
  return data;
}

}  // namespace shardproof
