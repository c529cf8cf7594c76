// edges: which synchronisations of one rank does an engine need?
#include <unistd.h>

#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/common/frame.h"
#include "conformance/common/safe_text.h"
#include "conformance/report/screen.h"
#include "conformance/runner/chosen.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/edges/edges.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/isolation/run_apart.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/workers/worker_pool.h"

namespace shardproof {

namespace {

constexpr double kEdgeSeconds = 600;

// In a worker.
std::string PackedRow(const EdgeReport& report, size_t place, const RunCase& run) {
  EdgeRow row = report.at(place);
  try {
    row = report.Judge(place, run);
  } catch (const EngineDied& died) {
    const Verdict verdict = VerdictOf(died);
    row.kind = EdgeKind::kNeeded;
    for (const Finding& finding : verdict.result.findings) row.text = finding.requirement + " ";
    row.text += died.end.death;
  }
  return PackFrame({std::to_string(static_cast<int>(row.kind)), row.text});
}

EdgeRow RowOfAnswer(const EdgeRow& known, const WorkResult& result) {
  if (!result.done) throw std::runtime_error("the process that judged it: " + result.death);
  std::string blob = result.blob;
  bool bad = false;
  const std::optional<Frame> fields = TakeFrame(&blob, &bad);
  if (!fields || fields->size() != 2)
    throw std::runtime_error("what was said of a synchronisation is not whole");
  EdgeRow row = known;
  row.kind =
      static_cast<EdgeKind>(NumberOf((*fields)[0], 0, static_cast<int64_t>(EdgeKind::kNotCovered)));
  row.text = (*fields)[1];
  return row;
}

Paint PaintOf(EdgeKind kind) {
  if (kind == EdgeKind::kNeeded) return Paint::kGood;
  return kind == EdgeKind::kNotCovered ? Paint::kBad : Paint::kSoft;
}

void Show(const EdgeRow& row, Screen& screen) {
  std::ostringstream line;
  line << std::left << std::setw(16) << EdgeKindName(row.kind);
  screen.Put(line.str(), PaintOf(row.kind));
  line.str("");
  line << std::left << std::setw(16) << row.call + ":" + std::to_string(row.nth) << " event "
       << std::setw(6) << row.event << std::setw(12) << VisibleLine(row.stream) << " "
       << VisibleLine(row.text);
  screen.Put(line.str() + "\n");
}

int Conclude(const std::string& id, const Options& options,
             const std::map<EdgeKind, size_t>& counts, const EdgeReport& report, Screen& screen) {
  std::string text = "rank " + std::to_string(options.rank) + " of " + id + ": " +
                     std::to_string(report.size()) + " synchronisations";
  for (const auto& [kind, n] : counts)
    text += std::string(text.ends_with("s") ? ": " : ", ") + std::to_string(n) + " " +
            EdgeKindName(kind);
  const bool open = counts.contains(EdgeKind::kNotCovered) || report.untried() > 0;
  screen.Line(text, open ? Paint::kBad : Paint::kGood);
  return open ? 1 : 0;
}

// Tells of each in the order of the trace, as soon as those before it have ended.
std::map<EdgeKind, size_t> JudgeAll(const EdgeReport& report, const Options& options,
                                    const EngineProcessOptions& limits, Screen& screen) {
  PoolOptions pool;
  pool.jobs =
      options.jobs > 0 ? options.jobs : static_cast<int>(std::thread::hardware_concurrency());
  pool.stall_seconds = options.stall_seconds;
  pool.limit_seconds = kEdgeSeconds;
  std::map<EdgeKind, size_t> counts;
  std::map<size_t, EdgeRow> waiting;
  size_t told = 0;
  const auto done = [&](size_t place, const WorkResult& result) {
    waiting[place] = RowOfAnswer(report.at(place), result);
    for (auto next = waiting.find(told); next != waiting.end(); next = waiting.find(++told)) {
      ++counts[next->second.kind];
      Show(next->second, screen);
      waiting.erase(next);
    }
    std::cout << std::flush;
  };
  const auto work = [&](size_t place, WorkerSide& side) {
    EngineProcessOptions watched = limits;
    watched.waiting = [&side] { side.waits->fetch_add(1); };
    return PackedRow(report, place, RunApart(options.impl, watched));
  };
  RunInWorkers(report.size(), pool, work, done);
  return counts;
}

}  // namespace

int EdgesCommand(const Options& options) {
  if (!options.fault.empty())
    throw std::invalid_argument(
        "edges plants faults of its own, one in each run: leave --fault out");
  const Case c = CaseOfId(options.cases.front());
  std::cout << VisibleLine(HeaderLine(options)) << std::endl;
  if (!ProbeEngine(options).loads)
    throw std::invalid_argument(options.impl + " does not load: shardproof run says why");
  EngineProcessOptions limits;
  limits.stall_seconds = options.stall_seconds;
  limits.limit_seconds = kEdgeSeconds;
  const ScratchFolder scratch;
  std::optional<EdgeReport> report;
  try {
    report.emplace(c, RunApart(options.impl, limits), SimOptionsFor(options, Id(c), scratch.path()),
                   options.rank);
  } catch (const EngineDied& died) {
    throw std::invalid_argument("case " + Id(c) + " fails as it is: " + died.end.death);
  }
  Screen screen(std::cout, DisplayOf(options.color, isatty(STDOUT_FILENO) != 0));
  const std::map<EdgeKind, size_t> counts = JudgeAll(*report, options, limits, screen);
  if (report->untried() > 0)
    screen.Line(std::to_string(report->untried()) + " more order something and were not tried",
                Paint::kBad);
  return Conclude(Id(c), options, counts, *report, screen);
}

}  // namespace shardproof
