// What of profiles.h says how much of the spaces cases cover.
#include "conformance/cases/fabric_spaces.h"
#include "conformance/cases/profiles.h"

namespace shardproof {
namespace {

CoverageReport CoverageOf(const std::vector<Case>& cases, int t, const FactorSpace& space) {
  CoverageReport report;
  for (const Case& c : cases) {
    if (!space.Counts(c)) continue;
    ++report.cases;
    ++(c.illegal.empty() ? report.legal : report.illegal);
    if (c.instances.size() > 1) ++report.shared_world;
  }
  report.count = CountCoverage(space.problem(), space.RowsOf(cases), t);
  return report;
}

// "ep 2 4"
std::string Listed(const FactorSpace& space, const std::string& factor) {
  std::string text = factor;
  for (const std::string& value :
       space.problem().factors[static_cast<size_t>(space.FactorIndex(factor))].values) {
    text += " " + value;
  }
  return text;
}

std::vector<int32_t> UpTo(int32_t ranks, const std::vector<int32_t>& worlds) {
  std::vector<int32_t> some;
  for (const int32_t world : worlds) {
    if (world <= ranks) some.push_back(world);
  }
  return some;
}

CoverageReport ScheduleCoverageIn(const ScheduleSpace& space, const std::vector<Case>& cases,
                                  int t) {
  CoverageReport report = CoverageOf(cases, t, space);
  report.of = "values of experts and schedules (" + Listed(space, "world") + ", " +
              Listed(space, "ep") + ")";
  return report;
}

CoverageReport LayerWiseCoverageIn(const LayerWiseSpace& space, const std::vector<Case>& cases,
                                   int t) {
  CoverageReport report = CoverageOf(cases, t, space);
  report.of = "values of layer-wise engines (" + Listed(space, "world") + ")";
  return report;
}

CoverageReport PipelineCoverageIn(const PipelineSpace& space, const std::vector<Case>& cases,
                                  int t) {
  CoverageReport report = CoverageOf(cases, t, space);
  report.of = "values of pipelines and of layer-wise schedules (" + Listed(space, "world") + ")";
  return report;
}

}  // namespace

CoverageReport Coverage(const std::vector<Case>& cases, int t, const std::vector<int32_t>& worlds,
                        Spaces& spaces) {
  return CoverageOf(cases, t, spaces.Dense(worlds));
}

CoverageReport ScheduleCoverage(const std::vector<Case>& cases, int t, const std::string& fabric,
                                Spaces& spaces) {
  return ScheduleCoverageIn(ScheduleSpaceOf(fabric, spaces), cases, t);
}

CoverageReport LayerWiseCoverage(const std::vector<Case>& cases, int t, const std::string& fabric,
                                 Spaces& spaces) {
  return LayerWiseCoverageIn(LayerWiseSpaceOf(fabric, spaces), cases, t);
}

CoverageReport PipelineCoverage(const std::vector<Case>& cases, int t, const std::string& fabric,
                                Spaces& spaces) {
  return PipelineCoverageIn(PipelineSpaceOf(fabric, spaces), cases, t);
}

std::vector<std::string> CoverageFacts(const std::vector<Case>& cases, const std::string& profile,
                                       const std::string& fabric, Spaces& spaces, int32_t ranks) {
  const int t = profile == "full" ? 3 : 2;
  const FabricSpaces& row = SpacesOfFabric(fabric);
  if (row.few_ranks_of.empty()) {
    return {Coverage(cases, t, SpaceWorlds(fabric), spaces).Text(),
            ScheduleCoverage(cases, t, fabric, spaces).Text(),
            LayerWiseCoverage(cases, t, fabric, spaces).Text(),
            PipelineCoverage(cases, t, fabric, spaces).Text()};
  }
  CoverageReport first = Coverage(cases, t, UpTo(ranks, row.worlds), spaces);
  first.of += " (worlds of at most " + std::to_string(ranks) + ")";
  std::vector<std::string> facts = {first.Text()};
  const std::vector<int32_t> with_experts = UpTo(ranks, row.schedule_worlds);
  if (!with_experts.empty()) {
    facts.push_back(
        ScheduleCoverageIn(spaces.Schedule(with_experts, row.schedule_eps), cases, t).Text());
  }
  const std::vector<int32_t> with_layer_wise = UpTo(ranks, row.layer_wise_worlds);
  facts.push_back(LayerWiseCoverageIn(spaces.LayerWise(with_layer_wise), cases, t).Text());
  const std::vector<int32_t> with_pipelines = UpTo(ranks, row.pipeline_worlds);
  if (!with_pipelines.empty())
    facts.push_back(PipelineCoverageIn(spaces.Pipeline(with_pipelines), cases, t).Text());
  return facts;
}

std::string CoverageReport::Text() const {
  std::string text = count.strength == 2 ? "pairs" : "triples";
  text += " of " + of + ": " + std::to_string(count.covered) + "/" +
          std::to_string(count.possible) + " of the possible, " + std::to_string(count.impossible) +
          " impossible; " + std::to_string(cases) + " cases (" + std::to_string(illegal) +
          " illegal, " + std::to_string(shared_world) + " with several engines)";
  for (const std::string& one : count.missing) text += "\n  not covered: " + one;
  return text;
}

}  // namespace shardproof
