// What does it cost to judge matching and deadlock of a world: through shapes, or from the traces
// of all ranks? One of the two, in this process; ci/symmetry_cost compares them.
//
//   symmetry_cost CASE shapes|all [--fault TEXT] [--most-seconds S] [--most-mb MB]
//
// The reference runs on the dry fabric, rank after rank. `shapes` finds the shape of each trace as
// it comes and keeps one trace of each; then CheckManyRanks judges. `all` keeps the trace of each
// rank; then CheckMatching and CheckDeadlock judge. Prints one JSON object:
//
//   ranks, events, shapes            events: of all ranks; shapes: 0 where none were looked for
//   shapes_seconds, judging_seconds  processor time, without that of the engine
//   mb                               largest resident memory of the process, with the engine; 2^20
//   broken, judged                   requirements with a finding, and those that were judged
//
// or {"over": "time"}, {"over": "memory"}: judging took more processor seconds than S (300), or the
// process more memory than MB (12000). --fault plants a wrong service call in one rank, as
// `shardproof run --fault` does. Exit status: 0; 2 it could not be measured; 3 usage.
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/symmetry/symmetry.h"
#include "conformance/runner/dry_run.h"
#include "conformance/runner/rank_config.h"

namespace shardproof {
namespace {

struct CostOptions {
  std::string id, way, fault;
  double most_seconds = 300;  // of judging
  double most_mb = 12000;     // of the process
};

struct OverMemory : std::exception {};

// Of this thread, which does all of it: the clock of a process whose time is limited goes by ticks
// of some milliseconds.
double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// That of getrusage begins with that of the process that started it.
double LargestMb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (double kilobytes = 0; word == "VmHWM:" && status >> kilobytes) return kilobytes / 1024;
  }
  throw std::runtime_error("/proc/self/status tells no VmHWM");
}

void SayOverTime(int) {
  constexpr std::string_view kSaid = "{\"over\":\"time\"}\n";
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, kSaid.data(), kSaid.size());
  _exit(0);
}

// From now on.
void LimitTo(double seconds, double mb) {
  std::signal(SIGPROF, SayOverTime);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec = static_cast<suseconds_t>(1e6 * (seconds - std::floor(seconds)));
  rlimit memory{};
  getrlimit(RLIMIT_AS, &memory);
  memory.rlim_cur = std::min(static_cast<rlim_t>(mb * (1 << 20)), memory.rlim_max);
  if (setitimer(ITIMER_PROF, &timer, nullptr) != 0 || setrlimit(RLIMIT_AS, &memory) != 0)
    throw std::runtime_error("the system refuses a limit");
}

class Measurement {
 public:
  explicit Measurement(const CostOptions& options) : options_(options), case_(ParseId(options.id)) {
    if (const std::string why = NotForDry(case_); !why.empty()) throw std::invalid_argument(why);
    if (!options.fault.empty()) run_.rank.fault = ParseFault(options.fault);
  }

  nlohmann::json Run() {
    const bool through_shapes = options_.way == "shapes";
    RunRanks(through_shapes);
    const symmetry::CompactWorld world = builder_.Take();
    LimitTo(options_.most_seconds, options_.most_mb);
    const double begin = ProcessorSeconds();
    const CheckResult result = through_shapes ? CheckManyRanks(world) : OfAllRanks();
    const double judging = ProcessorSeconds() - begin;
    std::set<std::string> broken, judged = result.judged;
    for (const Finding& finding : result.findings) broken.insert(finding.requirement);
    for (const NotCheckable& row : result.not_checkable) judged.erase(row.requirement);
    return {{"ranks", case_.world},
            {"events", events_},
            {"shapes", world.shapes.size()},
            {"shapes_seconds", shapes_seconds_},
            {"judging_seconds", judging},
            {"mb", LargestMb()},
            {"broken", broken},
            {"judged", judged}};
  }

 private:
  void RunRanks(bool through_shapes) {
    const Plugin plugin("builtin:reference");
    const Models models = MakeModels(case_);
    const CaseFamilies families(case_);
    run_.rank.families = &families;
    for (int32_t rank = 0; rank < case_.world; ++rank) {
      RankOutput output = RunDryRank(rank, case_, models, plugin, run_);
      if (output.outcome.kind != EngineOutcome::Kind::kOk && options_.fault.empty())
        throw std::runtime_error("rank " + std::to_string(rank) + ": " + output.outcome.reason);
      events_ += static_cast<int64_t>(output.trace.events.size());
      if (through_shapes) {
        const double begin = ProcessorSeconds();
        builder_.Add(std::move(output.trace), std::move(output.outcome));
        shapes_seconds_ += ProcessorSeconds() - begin;
      } else {
        traces_.push_back(output.trace);  // a copy has no room to grow
      }
      if (LargestMb() > options_.most_mb) throw OverMemory();
    }
  }

  CheckResult OfAllRanks() const {
    const graph::Lowered lowered(traces_);
    CheckResult result = CheckMatching(lowered);
    if (result.findings.empty()) result.Merge(CheckDeadlock(lowered));
    return result;
  }

  const CostOptions& options_;
  const Case case_;
  SimRunOptions run_;
  symmetry::CompactWorldBuilder builder_;
  std::vector<Trace> traces_;
  int64_t events_ = 0;
  double shapes_seconds_ = 0;
};

int Main(int argc, char** argv) {
  CostOptions options;
  CLI::App app{"symmetry_cost: what judging matching and deadlock of many ranks costs"};
  app.add_option("case", options.id, "id of a case")->required();
  app.add_option("way", options.way)->required()->check(CLI::IsMember({"shapes", "all"}));
  app.add_option("--fault", options.fault, "as of shardproof run");
  app.add_option("--most-seconds", options.most_seconds)->check(CLI::PositiveNumber);
  app.add_option("--most-mb", options.most_mb)->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
    const std::string line = Measurement(options).Run().dump();
    std::printf("%s\n", line.c_str());
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 3;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "symmetry_cost: %s\n", error.what());
    return 3;
  } catch (const OverMemory&) {
    std::printf("{\"over\":\"memory\"}\n");
    return 0;
  } catch (const std::bad_alloc&) {
    std::printf("{\"over\":\"memory\"}\n");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "symmetry_cost: %s: %s\n", options.id.c_str(), error.what());
    return 2;
  }
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) { return shardproof::Main(argc, argv); }
