// How long does one core need to read a million events and to judge matching, deadlock and races?
//
//   check_speed [--events N] [--registered] [TRACE_FOLDER]
//
// Processor seconds. The recorded run, or a synthetic one, with user buffers or without, is
// replicated to N events, written to a temporary folder, read and judged.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>

#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/graph/matching.h"
#include "conformance/checks/graph/races.h"
#include "conformance/checks/testing/replicate.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

// Processor time: one thread does all of it, and a busy machine does not disturb the figure.
class Clock {
 public:
  double Lap() {
    const std::clock_t now = std::clock();
    const double seconds = static_cast<double>(now - last_) / CLOCKS_PER_SEC;
    last_ = now;
    return seconds;
  }

 private:
  std::clock_t last_ = std::clock();
};

void Parts(const std::vector<Trace>& traces) {
  Clock clock;
  const graph::Program program = graph::Lower(traces);
  const double lower = clock.Lap();
  CheckResult result;
  const graph::Matching matching = graph::JudgeMatching(program, result);
  const double match = clock.Lap();
  const graph::DeadlockVerdict verdict = graph::JudgeDeadlock(program, matching, result);
  const double deadlock = clock.Lap();
  graph::MustOrder order(program);
  graph::JudgeRaces(program, order, verdict.never_started, result);
  std::printf("lower %.3f s, matching %.3f s, deadlock %.3f s, races %.3f s\n", lower, match,
              deadlock, clock.Lap());
}

int Measure(int argc, char** argv) {
  int64_t events = 1'000'000;
  bool registered = false;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--events" && i + 1 < argc) {
      events = std::atoll(argv[++i]);
    } else if (std::string(argv[i]) == "--registered") {
      registered = true;
    } else {
      folder = argv[i];
    }
  }
  const std::vector<Trace> recorded =
      folder.empty() ? graph::SyntheticRun(8, 32, registered) : ReadTraceFolder(folder);
  size_t total = 0, before = 0;
  for (const Trace& trace : recorded) before += trace.events.size();
  const auto scratch =
      std::filesystem::temp_directory_path() / ("check_speed_" + std::to_string(events));
  std::filesystem::create_directories(scratch);
  {
    const std::vector<Trace> large = graph::Replicate(recorded, events);
    for (const Trace& trace : large) total += trace.events.size();
    WriteTraceFolder(large, scratch);
  }
  Clock clock;
  const std::vector<Trace> traces = ReadTraceFolder(scratch);
  const double read = clock.Lap();
  const CheckResult result = CheckGraph(traces);
  const double judge = clock.Lap();
  std::printf("%s: %zu events of %zu ranks, replicated to %zu\n",
              folder.empty() ? "synthetic run" : folder.c_str(), before, recorded.size(), total);
  std::printf("read %.3f s, judged %.3f s, together %.3f s; %zu findings\n", read, judge,
              read + judge, result.findings.size());
  for (const std::string& note : result.notes) std::printf("%s\n", note.c_str());
  for (const Finding& finding : result.findings)
    std::printf("%s %s\n", finding.requirement.c_str(), finding.message.c_str());
  Parts(traces);
  std::filesystem::remove_all(scratch);
  return 0;
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) { return shardproof::Measure(argc, argv); }
