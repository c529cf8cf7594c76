#include "conformance/cases/legs.h"

#include <algorithm>
#include <stdexcept>

namespace shardproof {
namespace {

constexpr size_t kMostLegs = 8;

// The model apart from how it is cut. Experts without routing are one for each ep rank.
ModelConfig Whole(ModelConfig model) {
  if (!model.experts) model.ep = 1;
  const MoeConfig& moe = model.moe;
  // A capacity and auxiliary losses are those of a part.
  if (moe.capacity_percent > 0 || moe.aux_loss || moe.z_loss)
    model.moe.parts = (model.sequence_parallel ? model.tp : 1) * model.cp;
  model.start = 0;
  model.pp = model.chunks = model.tp = 1;
  model.sequence_parallel = model.vocab_parallel = false;
  model.sequence *= model.cp;  // parts of one
  model.cp = 1;
  model.context_parallel = false;
  model.samples_together = 1;
  model.loss_chunks = 1;
  return model;
}

// What is wrong with a leg by itself.
std::string ProblemOfOne(const Case& leg, bool first, bool last) {
  if (leg.instances.size() != 1) return "a leg has one engine";
  if (!leg.illegal.empty()) return "a leg is legal: " + leg.illegal;
  const std::string& script = leg.instances.front().script;
  const size_t save = script.find('s'), load = script.find('l');
  if (!last && save == std::string::npos)
    return "do=" + script + " saves nothing: the next leg has nothing to load";
  if (leg.killed && (!first || last))
    return "killed is the first of two legs: the other one loads what is left";
  if (leg.killed && script.back() != 's')
    return "do=" + script + " does not end with the save that is to be killed";
  if (!first && (load == std::string::npos || load > save))
    return "do=" + script + " does not load what the leg before it saved";
  return "";
}

// Why a leg cannot go on from what the first one saved.
std::string ChangeProblem(const Case& first, const Case& leg) {
  const InstanceSpec &a = first.instances.front(), &b = leg.instances.front();
  if (leg.seed != first.seed) return "another seed of the data";
  if (b.optimizer.Text() != a.optimizer.Text())
    return "optimizer " + b.optimizer.Text() + ", the first leg has " + a.optimizer.Text();
  if (TokensPerStep(b) != TokensPerStep(a))
    return "a step has " + std::to_string(TokensPerStep(b)) + " tokens, in the first leg " +
           std::to_string(TokensPerStep(a)) + ": choose k and seq";
  const ModelConfig first_model = Whole(a.model), model = Whole(b.model);
  if (model.moe.parts != first_model.moe.parts)
    return "a sample is routed in " + std::to_string(model.moe.parts) +
           " parts, in the first leg in " + std::to_string(first_model.moe.parts) +
           ": cap, aux and zloss are those of a part";
  if (!(model == first_model)) return "another model than the first leg's";
  return "";
}

std::string StarvedProblem(const Case& c) {
  const bool starved = c.starved || std::any_of(c.before.begin(), c.before.end(),
                                                [](const Case& leg) { return leg.starved; });
  if (!starved) return "";
  if (!c.before.empty() || c.killed || c.instances.size() > 1)
    return "starved is a case of one leg and one engine";
  if (!c.illegal.empty()) return "starved is a case that engines run: " + c.illegal;
  if (MustFail(c.instances.front())) return "starved with nan and nanloss: the run ends anyway";
  return "";
}

}  // namespace

void GoOnFrom(const Case* before, Case* leg) {
  for (InstanceSpec& spec : leg->instances) {
    spec.resumed = -1;
    spec.saves_before = 0;
    spec.model.start = 0;
    if (before == nullptr || before->instances.empty()) continue;
    const InstanceSpec& from = before->instances.front();
    spec.saves_before = from.saves_before + static_cast<int32_t>(std::count(
                                                from.script.begin(), from.script.end(), 's'));
    if (spec.saves_before == 0) continue;
    spec.model.start = from.model.start + 1;
    // The count that an evaluation after one more load would have.
    spec.resumed = ExpandScript(from.script + "le", from.resumed).back().step;
  }
}

std::string LegProblem(const Case& c, size_t i) {
  if (const std::string problem = StarvedProblem(c); !problem.empty()) return problem;
  if (c.before.empty() && !c.killed) return "";
  if (!c.before.empty() && c.before.front().killed && c.before.size() > 1)
    return "after a leg whose save is killed one more leg can follow";
  if (c.before.size() >= kMostLegs)
    return "a case has at most " + std::to_string(kMostLegs) + " legs";
  const bool last = i == c.before.size();
  const Case& leg = last ? c : c.before[i];
  std::string problem = ProblemOfOne(leg, i == 0, last);
  if (problem.empty() && i > 0) problem = ChangeProblem(c.before.front(), leg);
  if (problem.empty()) return "";
  Case alone = leg;
  alone.before.clear();
  return "leg " + std::to_string(i + 1) + ", " + Id(alone) + ": " + problem;
}

int32_t MostRanks(const Case& c) {
  int32_t most = c.world;
  for (const Case& leg : c.before) most = std::max(most, leg.world);
  return most;
}

int32_t QueuesOf(const Case& c) {
  const bool one = std::any_of(c.instances.begin(), c.instances.end(), [](const auto& spec) {
    return spec.schedule == CommSchedule::kOneQueue;
  });
  return one ? 1 : 0;
}

std::vector<Case> LegsOf(const Case& c) {
  std::vector<Case> legs;
  for (size_t i = 0; i < c.before.size(); ++i) {
    legs.push_back(c.before[i]);
    legs.back().killed = false;  // run by itself, it is not
    legs.back().before.assign(c.before.begin(), c.before.begin() + static_cast<ptrdiff_t>(i));
  }
  legs.push_back(c);
  return legs;
}

}  // namespace shardproof
