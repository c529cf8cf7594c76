#include "conformance/runner/run_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include "conformance/cases/profiles.h"
#include "conformance/fabric/nccl/rendezvous_environment.h"
#include "conformance/report/console.h"
#include "conformance/report/files.h"
#include "conformance/report/waivers.h"
#include "conformance/requirements/registry.h"
#include "conformance/runner/run_nccl.h"
#include "conformance/runner/schedules.h"
#include "conformance/runner/verdict_io.h"
#include "conformance/runner/worker_pool.h"
#include "conformance/trace/writer.h"

namespace shardproof {

namespace {

int RunSimCommand(const Options& options, const OtherFabrics&, int argc, char** argv);
int RunUnderMpi(const Options& options, const OtherFabrics& others, int argc, char** argv);
int RunOnGpus(const Options& options, const OtherFabrics& others, int argc, char** argv);

// One row a fabric: what it takes, and how it is run. Which cases it gets is a row of
// cases/fabric_spaces.cc.
struct FabricRow {
  const char* name;
  bool replays;       // --queues, --schedules, replay: it chooses when things happen
  bool starts_ranks;  // --ranks
  const char* ranks_instead;
  int (*run)(const Options& options, const OtherFabrics& others, int argc, char** argv);
};
constexpr FabricRow kFabrics[] = {
    {"sim", true, false, "", RunSimCommand},
    {"mpi", false, false, ": mpirun -n says how many", RunUnderMpi},
    {"nccl", false, true, "", RunOnGpus},
};

const FabricRow& FabricNamed(const std::string& name) {
  for (const FabricRow& row : kFabrics) {
    if (row.name == name) return row;
  }
  throw std::invalid_argument("fabric " + name + ": there is none");
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &utc)};
}

Status StatusOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return Status::kPass;
    case Outcome::kFail:
      return Status::kFail;
    case Outcome::kUnsupported:
      return Status::kUnsupported;
    case Outcome::kNotCheckable:
      return Status::kNotCheckable;
    case Outcome::kSuiteError:
      return Status::kSuiteError;
  }
  return Status::kSuiteError;
}

RecordLevel LevelOf(const std::string& name) {
  if (name == "off") return RecordLevel::kOff;
  return name == "order"   ? RecordLevel::kOrder
         : name == "bytes" ? RecordLevel::kBytes
                           : RecordLevel::kDigests;
}

// The schedule of a case: as asked, or one that depends on seed and case alone.
Strategy StrategyFor(const Options& options, const std::string& id) {
  if (!options.schedule.empty()) return ParseStrategy(options.schedule);
  uint64_t h = options.seed;
  for (const char c : id) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  constexpr Strategy kAll[] = {Strategy::kRandom, Strategy::kPct, Strategy::kLazyComm,
                               Strategy::kLazyCompute, Strategy::kEager};
  return kAll[(h >> 32) % std::size(kAll)];
}

// What a process that died says, as a finding of the case; or as a fault of the suite, if no engine
// code ran.
Verdict VerdictOfDeath(const WorkResult& result) {
  Verdict verdict;
  if (result.rank < 0) {
    verdict.outcome = Outcome::kSuiteError;
    verdict.reason = "outside of engine code: " + result.death;
    return verdict;
  }
  verdict.outcome = Outcome::kFail;
  Finding finding;
  finding.requirement = result.hung ? "GE-27" : "GE-26";
  finding.rank = result.rank;
  finding.operation = result.where;
  finding.expected = result.hung ? "the engine goes on" : "the engine returns from its entry calls";
  finding.seen = result.death;
  const std::string who = "rank " + std::to_string(result.rank);
  finding.message = result.hung ? who + " makes no progress" : who + "'s engine ended its process";
  verdict.result.findings.push_back(finding);
  verdict.result.judged.insert(finding.requirement);
  return verdict;
}

}  // namespace

std::vector<Case> SelectCases(const Options& options, std::vector<std::string>* facts) {
  if (!options.cases.empty()) {
    std::vector<Case> cases;
    for (const std::string& id : options.cases) cases.push_back(ParseId(id));
    return cases;
  }
  const int ranks = options.ranks > 0 ? options.ranks : kDefaultRanks;
  Spaces spaces;
  std::vector<Case> cases = Profile(options.profile, options.fabric, spaces, options.seed, ranks);
  if (facts != nullptr && options.profile != "smoke") {
    const std::vector<std::string> coverage =
        CoverageFacts(cases, options.profile, options.fabric, spaces, ranks);
    facts->insert(facts->end(), coverage.begin(), coverage.end());
  }
  return cases;
}

SimRunOptions SimOptionsFor(const Options& options, const std::string& id,
                            const std::string& folder) {
  SimRunOptions sim;
  sim.seed = options.seed;
  sim.strategy = StrategyFor(options, id);
  sim.queues = options.queues;
  sim.rank.level = LevelOf(options.level);
  sim.rank.folder = folder;
  if (!options.fault.empty()) sim.rank.fault = ParseFault(options.fault);
  if (!options.trace.empty()) sim.trace_folder = options.trace + "/" + id;
  return sim;
}

CaseReport ReportOf(const Case& c, Verdict verdict, const Options& options) {
  CaseReport report;
  report.id = Id(c);
  report.status = StatusOf(verdict.outcome);
  report.reason = std::move(verdict.reason);
  for (Finding& finding : verdict.result.findings)
    report.findings.push_back({std::move(finding), ""});
  report.not_checkable = std::move(verdict.result.not_checkable);
  report.notes = std::move(verdict.result.notes);
  report.judged.assign(verdict.result.judged.begin(), verdict.result.judged.end());
  report.replay = "shardproof replay --impl " + options.impl + " --case " + report.id + " --seed " +
                  std::to_string(options.seed);
  if (!options.schedule.empty()) report.replay += " --schedule " + options.schedule;
  if (options.queues > 0) report.replay += " --queues " + std::to_string(options.queues);
  if (!options.fault.empty()) report.replay += " --fault " + options.fault;
  if (FabricNamed(options.fabric).starts_ranks) {  // replay is of the sim fabric
    report.replay.replace(0, std::string("shardproof replay").size(), "shardproof run --verbose");
    report.replay += " --fabric " + options.fabric + " --ranks " + std::to_string(options.ranks) +
                     " --gemm " + options.gemm;
  }
  return report;
}

Sentence Sentences() {
  return [registry = Registry::Builtin()](std::string_view id) {
    const Requirement* row = registry.Find(id);
    return row == nullptr ? std::string("(not in the registry)") : row->text;
  };
}

namespace {

std::vector<Waiver> WaiversOf(const Options& options) {
  std::ifstream in(options.waivers);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return ParseWaivers(text, options.waivers);
}

// A run may take an hour: what is wrong with the command is said before it.
void CheckOptions(const Options& options) {
  if (!options.waivers.empty()) WaiversOf(options);
  if (!options.fault.empty()) ParseFault(options.fault);
  if (!options.schedule.empty()) ParseStrategy(options.schedule);
  const FabricRow& fabric = FabricNamed(options.fabric);
  if (!fabric.replays && options.queues > 0)
    throw std::invalid_argument("--queues is of the sim fabric, not of " + options.fabric);
  if (!fabric.replays && options.schedules > 1) {
    throw std::invalid_argument("--schedules is of the sim fabric, not of " + options.fabric);
  }
  if (!fabric.starts_ranks && options.ranks > 0) {
    throw std::invalid_argument("--ranks is of the nccl fabric, not of " + options.fabric +
                                fabric.ranks_instead);
  }
}

}  // namespace

int FinishReport(RunReport& report, const Options& options, Console& console) {
  if (!options.waivers.empty()) ApplyWaivers(report, WaiversOf(options), Today());
  if (!options.report.empty()) WriteReportFolder(options.report, report, Sentences());
  console.Finish(report);
  return ExitCode(report);
}

namespace {

// What workers do for one case: the first item judges it, each other one compares a range of
// schedules with it.
struct SimWork {
  size_t item = 0;   // of the case
  size_t index = 0;  // of the case
  ScheduleRange range;
};

std::vector<SimWork> WorkFor(size_t cases, const Options& options, int jobs) {
  std::vector<SimWork> work;
  for (size_t c = 0; c < cases; ++c) {
    work.push_back({c, 0, {}});
    for (const ScheduleRange& range : SplitSchedules(options.seed, options.schedules, jobs)) {
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
    for (size_t i = 1; i < parts.size(); ++i) MergeSchedules(parts[i], &parts[0]);
    if (options.schedules > 1) {
      NoteSchedules(options.schedules,
                    options.schedule.empty() ? "random and pct" : options.schedule, &parts[0]);
      different_ += std::set<uint64_t>(parts[0].schedules.begin(), parts[0].schedules.end()).size();
    }
    return std::move(parts[0]);
  }

  size_t different() const { return different_; }  // schedules, of all cases taken

 private:
  size_t different_ = 0;
  std::vector<std::vector<Verdict>> parts_;
  std::vector<size_t> missing_;
};

std::string RunPart(const Case& c, const SimWork& work, const Plugin& plugin,
                    const Options& options, const std::string& folder, WorkerSide& side) {
  SimRunOptions sim = SimOptionsFor(options, Id(c), folder);
  sim.rank.progress = side.progress;
  sim.on_start = [&side](std::function<bool(uint64_t, std::string*)> describe) {
    side.describe = std::move(describe);
  };
  const Verdict verdict =
      work.index == 0 ? JudgeOnSim(c, plugin, sim)
                      : CompareSchedules(c, plugin, sim, work.range, options.schedule.empty());
  side.describe = nullptr;
  return PackVerdict(verdict);
}

int RunSimCommand(const Options& options, const OtherFabrics&, int, char**) {
  RunReport report{
      options.impl, options.fabric, options.profile, options.seed, "observed", {}, {}, {}};
  const std::vector<Case> cases = SelectCases(options, &report.facts);
  if (options.queues > 0)
    report.facts.push_back("hardware queues a rank: " + std::to_string(options.queues));
  report.cases.resize(cases.size());
  const Plugin plugin(options.impl);
  const ScratchFolder scratch;
  Console console(std::cout, isatty(STDOUT_FILENO) != 0, options.verbose, cases.size(),
                  Sentences());
  PoolOptions pool;
  pool.jobs =
      options.jobs > 0 ? options.jobs : static_cast<int>(std::thread::hardware_concurrency());
  pool.stall_seconds = options.stall_seconds;
  const std::vector<SimWork> work = WorkFor(cases.size(), options, pool.jobs);
  SimVerdicts verdicts(work, cases.size());
  RunInWorkers(
      work.size(), pool,
      [&](size_t part, WorkerSide& side) {
        const std::string folder = scratch.path() + "/" + std::to_string(part);
        return RunPart(cases[work[part].item], work[part], plugin, options, folder, side);
      },
      [&](size_t part, const WorkResult& result) {
        const size_t item = work[part].item;
        if (!verdicts.Add(work[part],
                          result.done ? UnpackVerdict(result.blob) : VerdictOfDeath(result)))
          return;
        report.cases[item] = ReportOf(cases[item], verdicts.Take(item, options), options);
        console.CaseDone(report.cases[item]);
      });
  if (options.schedules > 1) {
    report.facts.push_back("schedules: " + std::to_string(options.schedules) + " of each case, " +
                           std::to_string(verdicts.different()) + " different in all");
  }
  return FinishReport(report, options, console);
}

int RunUnderMpi(const Options& options, const OtherFabrics& others, int argc, char** argv) {
  if (others.mpi) return others.mpi(options, argc, argv);
  throw std::invalid_argument("--fabric mpi: this shardproof was built without MPI");
}

// A job of a launcher, of mpirun, or one that is started here.
int RunOnGpus(const Options& options, const OtherFabrics& others, int argc, char** argv) {
  const std::optional<JobPlace> place =
      JobFromEnvironment([](const char* name) { return std::getenv(name); });
  if (!others.nccl.open) return RunNcclCommand(options, others.nccl, nullptr);  // says so
  if (place) return RunNcclCommand(options, others.nccl, Meet(*place));
  const bool mpirun = std::getenv("PMI_RANK") != nullptr ||
                      std::getenv("OMPI_COMM_WORLD_RANK") != nullptr ||
                      std::getenv("PMIX_RANK") != nullptr;
  if (!mpirun) return RunNcclCommand(options, others.nccl, nullptr);
  if (others.nccl_under_mpi) return others.nccl_under_mpi(options, others.nccl, argc, argv);
  throw std::invalid_argument(
      "mpirun started this shardproof, which was built without MPI: use shardproof_gpu_mpi, or "
      "start it once (--ranks), or "
      "give each process RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
}

}  // namespace

int RunCommand(const Options& options, const OtherFabrics& others, int argc, char** argv) {
  CheckOptions(options);
  if (options.impl.starts_with("trace:")) {
    Options check = options;
    check.target = options.impl;
    return CheckCommand(check);
  }
  return FabricNamed(options.fabric).run(options, others, argc, argv);
}

}  // namespace shardproof
