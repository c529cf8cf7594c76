#include "conformance/runner/isolation/probe.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "conformance/runner/plugin.h"
#include "conformance/runner/replay_line.h"
#include "conformance/runner/workers/engine_process.h"

namespace shardproof {
namespace {

constexpr double kLimitSeconds = 120;  // for a library that is large, on a slow disk

std::string NameOf(const spf_plugin& table) {
  constexpr size_t kLongest = 100;  // of text that need not end
  const auto text = [](const char* words) {
    return words == nullptr ? std::string() : std::string(words, strnlen(words, kLongest));
  };
  const std::string name = text(table.name), version = text(table.version);
  return name.empty() || version.empty() ? name : name + " " + version;
}

// In a process of its own. The address is wrong: its words, behind an x.
Frame Ask(const std::string& address, bool unload, WorkerSide& side) {
  const auto on_step = [&](const char* step) {
    side.progress->Enter(kNoRank);
    Progress::Set(side.progress->call, sizeof side.progress->call, step);
  };
  try {
    Plugin plugin(address, on_step);
    const bool has_plan = plugin.plan() != nullptr;
    const std::string name = NameOf(plugin.table());
    if (unload) plugin.Unload(on_step);
    return {has_plan ? "plan" : "", name};
  } catch (const std::invalid_argument& error) {
    return {"x" + std::string(error.what()), ""};
  }
}

Finding FindingOf(const EngineProcessEnd& end, const std::string& address) {
  Finding finding;
  finding.requirement = end.hung ? "GE-27" : "GE-26";
  finding.operation = end.where;
  finding.expected = "the library is loaded, asked and unloaded, and the process goes on";
  finding.seen = end.death;
  finding.message = address + ": " + end.where +
                    (end.hung ? " does not come back: look at " : " ended the process: look at ") +
                    (end.where == "shardproof_plugin" ? "that function"
                     : end.where == "unloading the library"
                         ? "the library's destructors, and at what it gives to atexit"
                         : "the library's constructors") +
                    StackText(end.stack);
  return finding;
}

Finding LeftFinding(const EngineProcessEnd& end, const std::string& address) {
  Finding finding;
  finding.requirement = "GE-37";
  finding.operation = "loading the library";
  finding.expected = "nothing else runs";
  finding.seen = end.left + " still ran when the process that had loaded the library had ended";
  finding.message = address + ": the library starts processes when it is loaded";
  return finding;
}

// What it answers, and how the engine calls itself; nothing: it did not, and the findings say why.
std::optional<std::vector<std::string>> AskApart(const Options& options, bool unload,
                                                 EngineProbe* probe) {
  EngineProcessOptions limits;
  limits.stall_seconds = options.stall_seconds;
  limits.limit_seconds = kLimitSeconds;
  EngineProcessEnd end =
      RunInEngineProcess(limits, [&](WorkerSide& side) { return Ask(options.impl, unload, side); });
  if (!end.error.empty()) throw std::runtime_error(options.impl + ": " + end.error);
  if (!end.answered) {
    probe->findings.push_back(FindingOf(end, options.impl));
    probe->printed = end.printed;
    return std::nullopt;
  }
  if (!end.left.empty() && !unload) probe->findings.push_back(LeftFinding(end, options.impl));
  if (end.evidence.size() != 2) throw std::runtime_error(options.impl + ": no answer of a probe");
  std::vector<std::string> answer(end.evidence.begin(), end.evidence.end());
  if (answer[0].starts_with("x")) throw std::invalid_argument(answer[0].substr(1));
  return answer;
}

}  // namespace

EngineProbe ProbeEngine(const Options& options) {
  EngineProbe probe;
  const std::optional<std::vector<std::string>> answer = AskApart(options, false, &probe);
  if (!answer) return probe;
  probe.loads = true;
  probe.has_plan = answer->at(0) == "plan";
  probe.name = answer->at(1);
  if (options.impl.starts_with("lib:")) AskApart(options, true, &probe);
  return probe;
}

std::optional<CaseReport> RowOf(const EngineProbe& probe, const Options& options) {
  if (probe.findings.empty()) return std::nullopt;
  CaseReport row;
  row.id = kEngineRow;
  row.status = Status::kFail;
  row.reason = "before any case";
  for (const Finding& finding : probe.findings) {
    row.findings.push_back({finding, ""});
    row.judged.push_back(finding.requirement);
  }
  row.printed = probe.printed;
  row.replay = ReplayLineOfProbe(options);
  return row;
}

}  // namespace shardproof
