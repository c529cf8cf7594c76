#include "conformance/runner/isolation/run_apart.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "conformance/fabric/process/own_state.h"
#include "conformance/runner/isolation/sim_evidence.h"
#include "conformance/runner/judge.h"

namespace shardproof {
namespace {

// In the engine's process.
Frame Evidence(const std::string& address, SimRunOptions sim, const FrameInside& work,
               WorkerSide& side) {
  Progress& progress = *side.progress;
  const Plugin plugin(address, [&](const char* step) {
    progress.Enter(kNoRank);
    Progress::Set(progress.call, sizeof progress.call, step);
  });
  progress.Enter(-1);
  sim.rank.progress = &progress;
  sim.on_start = [&side](std::function<bool(uint64_t, std::string*)> describe) {
    side.describe = std::move(describe);
  };
  const OwnState before;
  Frame fields = work(plugin, sim);
  side.describe = nullptr;  // what it refers to is gone
  fields.push_back(before.ChangedNow());
  return fields;
}

void RequireAnswer(EngineProcessEnd& end) {
  if (!end.error.empty()) {
    throw std::runtime_error("in the process of the engine, in the suite's code: " + end.error);
  }
  if (!end.answered) throw EngineDied{std::move(end)};
}

}  // namespace

Verdict VerdictOf(const EngineDied& died) {
  const EngineProcessEnd& end = died.end;
  Verdict verdict;
  if (!end.foreign) {
    verdict.outcome = Outcome::kSuiteError;
    verdict.reason = "before any engine code: " + end.death;
    return verdict;
  }
  verdict.outcome = Outcome::kFail;
  Finding finding;
  finding.requirement = end.hung ? "GE-27" : "GE-26";
  finding.rank = end.rank;
  finding.operation = end.where;
  finding.expected = end.hung ? "the engine goes on" : "the engine returns from its entry calls";
  finding.seen = end.death;
  const std::string who = end.rank < 0 ? "the engine" : "rank " + std::to_string(end.rank);
  finding.message = who + (end.hung ? " makes no progress" : "'s engine ended its process");
  if (!end.hung && end.rank < 0) finding.message = "the engine ended its process";
  finding.message += StackText(end.stack);
  verdict.result.findings.push_back(finding);
  verdict.result.judged.insert(finding.requirement);
  verdict.printed = end.printed;
  return verdict;
}

RunData RunApartWith(const std::string& address, const EngineProcessOptions& options, const Case& c,
                     const SimRunOptions& sim, const RunInside& run) {
  EngineProcessOptions watched = options;
  watched.on_file_operation = sim.on_file_operation;
  const FrameInside work = [&](const Plugin& plugin, const SimRunOptions& inside) {
    return FieldsOf(run(plugin, inside));
  };
  EngineProcessEnd end = RunInEngineProcess(
      watched, [&](WorkerSide& side) { return Evidence(address, sim, work, side); });
  const int32_t ends_after = sim.rank.end_after_saves;
  if (end.cut || (!end.answered && ends_after > 0 && end.saved == ends_after)) {
    RunData data;
    data.run.spec = &c;
    data.cut = true;
    return data;
  }
  RequireAnswer(end);
  if (end.evidence.empty()) throw std::runtime_error("the evidence of " + Id(c) + " is empty");
  const std::string changed(end.evidence.back());
  end.evidence.pop_back();
  RunData data = RunDataOf(end.evidence, c);
  data.run.left_behind = {changed};
  data.printed = std::move(end.printed);
  if (!end.left.empty()) {
    std::string& left = data.run.left_behind.at(0);
    left +=
        (left.empty() ? "" : "; ") + end.left + " still ran when the engine's process had ended";
  }
  return data;
}

EngineProcessEnd FrameFromApart(const std::string& address, const EngineProcessOptions& options,
                                const SimRunOptions& sim, const FrameInside& work) {
  EngineProcessEnd end = RunInEngineProcess(
      options, [&](WorkerSide& side) { return Evidence(address, sim, work, side); });
  RequireAnswer(end);
  if (end.evidence.empty()) throw std::runtime_error("the evidence of a run is empty");
  return end;
}

RunCase RunApart(const std::string& address, const EngineProcessOptions& options) {
  using Clock = std::chrono::steady_clock;
  return [address, options, began = Clock::now()](const Case& c, const SimRunOptions& sim) {
    EngineProcessOptions rest = options;
    rest.limit_seconds -= std::chrono::duration<double>(Clock::now() - began).count();
    return RunApartWith(address, rest, c, sim,
                        [&c](const Plugin& plugin, const SimRunOptions& inside) {
                          return RunOnSim(c, MakeModels(c), plugin, inside);
                        });
  };
}

}  // namespace shardproof
