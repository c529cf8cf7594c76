#include "conformance/runner/support/ask_engine.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "conformance/common/at.h"
#include "conformance/runner/sim_run.h"
#include "conformance/runner/workers/engine_process.h"

namespace shardproof {
namespace {

constexpr double kSecondsOfACase = 1;  // and some for the library

// On all ranks of its grid. Where they differ the case is for a verdict.
bool Declined(const RunData& data, const Case& c) {
  using Kind = EngineOutcome::Kind;
  const InstanceSpec& spec = c.instances.front();
  for (int32_t rank = spec.offset; rank < spec.offset + spec.span; ++rank) {
    const Kind kind = At(data.run.outcomes, rank).kind;
    if (kind != Kind::kUnsupported && kind != Kind::kRejected) return false;
  }
  return true;
}

// In the engine's process: a letter a case.
std::string Answers(const std::string& address, const std::vector<Case>& cases, WorkerSide& side) {
  Progress& progress = *side.progress;
  const Plugin plugin(address, [&](const char* step) {
    progress.rank.store(kNoRank);
    Progress::Set(progress.call, sizeof progress.call, step);
  });
  SimRunOptions sim;
  sim.rank.level = RecordLevel::kOff;
  sim.rank.progress = &progress;
  std::string answers;
  for (const Case& c : cases) {
    progress.rank.store(-1);
    answers += Declined(RunOnSim(c, MakeModels(c), plugin, sim), c) ? 'd' : 't';
  }
  return answers;
}

// A part of the cases; where the process ends, its halves are asked by themselves.
void Ask(const std::string& address, double stall_seconds, const std::vector<Case>& cases,
         std::vector<bool>* taken) {
  if (cases.empty()) return;
  EngineProcessOptions limits;
  limits.stall_seconds = stall_seconds;
  limits.limit_seconds = 60 + kSecondsOfACase * static_cast<double>(cases.size());
  const EngineProcessEnd end = RunInEngineProcess(
      limits, [&](WorkerSide& side) { return Frame{Answers(address, cases, side)}; });
  if (!end.error.empty()) throw std::runtime_error(address + ": " + end.error);
  if (end.answered) {
    const std::string answers(end.evidence.size() == 1 ? end.evidence.front() : "");
    if (answers.size() != cases.size())
      throw std::runtime_error(address + ": no answer to what it takes");
    for (const char answer : answers) taken->push_back(answer == 't');
    return;
  }
  if (cases.size() == 1) {
    taken->push_back(true);
    return;
  }
  const auto middle = cases.begin() + static_cast<std::ptrdiff_t>(cases.size() / 2);
  Ask(address, stall_seconds, {cases.begin(), middle}, taken);
  Ask(address, stall_seconds, {middle, cases.end()}, taken);
}

}  // namespace

std::vector<bool> AskEngine(const std::string& address, double stall_seconds,
                            const std::vector<Case>& cases) {
  std::vector<bool> taken;
  Ask(address, stall_seconds, cases, &taken);
  return taken;
}

}  // namespace shardproof
