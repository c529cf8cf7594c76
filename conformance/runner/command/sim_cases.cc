#include "conformance/runner/command/sim_cases.h"

#include <exception>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "conformance/checks/symmetry/world_folder.h"
#include "conformance/runner/dry_run.h"
#include "conformance/runner/isolation/cut_saves.h"
#include "conformance/runner/isolation/run_apart.h"
#include "conformance/runner/isolation/starved_runs.h"
#include "conformance/runner/judge_on_sim.h"
#include "conformance/runner/many/judge_many.h"
#include "conformance/runner/many/world_evidence.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/timings.h"
#include "conformance/runner/verdict_io.h"
#include "conformance/trace/writer.h"

namespace shardproof {

namespace {

constexpr double kItemSeconds = 600;   // of engines, in one item of a worker
constexpr double kJudgeSeconds = 300;  // of the suite beside them

Verdict SuiteError(const std::string& reason) {
  Verdict verdict;
  verdict.outcome = Outcome::kSuiteError;
  verdict.reason = reason;
  return verdict;
}

// What workers do for one case: the first item judges it, each other one compares a range of
// timings with it.
struct SimWork {
  size_t item = 0;   // of the case
  size_t index = 0;  // of the case
  TimingRange range;
};

std::vector<SimWork> WorkFor(size_t cases, const Options& options, int jobs) {
  std::vector<SimWork> work;
  for (size_t c = 0; c < cases; ++c) {
    work.push_back({c, 0, {}});
    for (const TimingRange& range : SplitTimings(options.seed, options.timings, jobs)) {
      work.push_back({c, work.back().index + 1, range});
    }
  }
  return work;
}

// Gathers the parts of each case; says when the last one has come.
class SimVerdicts {
 public:
  SimVerdicts(const std::vector<SimWork>& work, size_t cases) : parts_(cases) {
    for (const SimWork& part : work) parts_[part.item].resize(part.index + 1);
    for (const auto& parts : parts_) missing_.push_back(parts.size());
  }
  bool Add(const SimWork& work, Verdict verdict) {
    parts_[work.item][work.index] = std::move(verdict);
    return --missing_[work.item] == 0;
  }
  Verdict Take(size_t item, const Options& options) {
    std::vector<Verdict>& parts = parts_[item];
    for (size_t i = 1; i < parts.size(); ++i) MergeTimings(parts[i], &parts[0]);
    if (options.timings > 1) {
      NoteTimings(options.timings, options.timing.empty() ? "random and pct" : options.timing,
                  &parts[0]);
      different_ += std::set<uint64_t>(parts[0].timings.begin(), parts[0].timings.end()).size();
    }
    return std::move(parts[0]);
  }

  size_t different() const { return different_; }  // timings, of all cases taken

 private:
  size_t different_ = 0;
  std::vector<std::vector<Verdict>> parts_;
  std::vector<size_t> missing_;
};

// Of more ranks than whose traces are kept.
Verdict RunManyRanks(const Case& c, const Options& options, const SimRunOptions& sim,
                     const EngineProcessOptions& limits) {
  EngineProcessEnd end =
      FrameFromApart(options.impl, limits, sim, [&](const Plugin& plugin, const auto& inside) {
        return RunManyDry(c, MakeModels(c), plugin, inside);
      });
  const std::string changed(end.evidence.back());
  end.evidence.pop_back();
  const symmetry::CompactWorld world = ManyRanksOf(end.evidence, c);
  end.memory.reset();
  if (!sim.trace_folder.empty()) symmetry::WriteWorldFolder(world, sim.trace_folder);
  Verdict verdict = JudgeManyRanks(c, world, changed);
  verdict.printed = std::move(end.printed);
  return verdict;
}

// In a worker, of the dry fabric: one run, and no other to compare with.
std::string RunDryPart(const Case& c, const Options& options, const std::string& folder,
                       const EngineProcessOptions& limits) {
  const SimRunOptions sim = SimOptionsFor(options, Id(c), folder);
  try {
    if (c.world > kMostRanksAtOnce) return PackVerdict(RunManyRanks(c, options, sim, limits));
    const RunData data =
        RunApartWith(options.impl, limits, c, sim, [&](const Plugin& plugin, const auto& inside) {
          return RunDry(c, MakeModels(c), plugin, inside);
        });
    if (!sim.trace_folder.empty()) WriteTraceFolder(data.run.traces, sim.trace_folder);
    Verdict verdict = JudgeRun(c, data.run, Numbers::kNotKept);
    verdict.printed = data.printed;
    return PackVerdict(verdict);
  } catch (const EngineDied& died) {
    return PackVerdict(VerdictOf(died));
  } catch (const std::exception& error) {
    return PackVerdict(SuiteError(error.what()));
  }
}

// In a worker. Engine code runs in processes below it; what comes of them is judged here.
std::string RunPart(const Case& c, const SimWork& work, const Options& options,
                    const std::string& folder, WorkerSide& side) {
  EngineProcessOptions limits;
  limits.stall_seconds = options.stall_seconds;
  limits.limit_seconds = kItemSeconds;
  limits.waiting = [&side] { side.waits->fetch_add(1); };  // who waits for an engine is not stuck
  if (options.fabric == "dry") return RunDryPart(c, options, folder, limits);
  const RunCase run = RunApart(options.impl, limits);
  const SimRunOptions sim = SimOptionsFor(options, Id(c), folder);
  try {
    if (work.index > 0)
      return PackVerdict(CompareTimings(c, run, sim, work.range, options.timing.empty()));
    Verdict verdict = JudgeCutSaves(JudgeOnSim(c, run, sim), c, run, sim);
    return PackVerdict(JudgeStarvedRuns(std::move(verdict), c, run, sim));
  } catch (const EngineDied& died) {
    return PackVerdict(VerdictOf(died));
  }
}

}  // namespace

SimCases::SimCases(const Options& options) : options_(options) {
  pool_.jobs =
      options.jobs > 0 ? options.jobs : static_cast<int>(std::thread::hardware_concurrency());
  pool_.stall_seconds = options.stall_seconds;
  pool_.limit_seconds = kItemSeconds + kJudgeSeconds;
}

void SimCases::Judge(const std::vector<Case>& cases, const CaseDone& done,
                     std::function<bool()> enough) {
  pool_.enough = std::move(enough);
  const ScratchFolder scratch;
  const std::vector<SimWork> work = WorkFor(cases.size(), options_, pool_.jobs);
  SimVerdicts verdicts(work, cases.size());
  std::vector<double> seconds(cases.size(), 0);
  RunInWorkers(
      work.size(), pool_,
      [&](size_t part, WorkerSide& side) {
        const std::string folder = scratch.path() + "/" + std::to_string(part);
        return RunPart(cases[work[part].item], work[part], options_, folder, side);
      },
      [&](size_t part, const WorkResult& result) {
        const size_t item = work[part].item;
        seconds[item] += result.seconds;
        if (!verdicts.Add(work[part], VerdictOfWorker(result))) return;
        CaseReport row = ReportOf(cases[item], verdicts.Take(item, options_), options_);
        row.seconds = seconds[item];
        done(item, std::move(row));
      });
  different_ += verdicts.different();
}

std::vector<CaseReport> SimCases::Judge(const std::vector<Case>& cases, const IsLast& last) {
  UpToLast reports(cases.size(), last);
  // Cases begin in order: when one is the last, those before it have begun, and will end.
  Judge(
      cases, [&](size_t place, CaseReport report) { reports.Add(place, std::move(report)); },
      [&] { return reports.Enough(); });
  return reports.Take();
}

}  // namespace shardproof
