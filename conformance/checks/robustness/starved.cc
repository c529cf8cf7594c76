#include "conformance/checks/robustness/starved.h"

#include <algorithm>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/robustness/robustness.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

using Kind = EngineOutcome::Kind;

std::string Words(const EngineOutcome& outcome) {
  std::string text = OutcomeName(outcome.kind);
  if (!outcome.call.empty()) text += " in " + outcome.call;
  return outcome.reason.empty() ? text : text + ": " + outcome.reason;
}

Finding Wrong(int32_t rank, const std::string& moment, std::string seen, std::string message) {
  Finding finding;
  finding.requirement = kStarved;
  finding.rank = rank;
  finding.operation = "mem_alloc, answered SPF_NO_MEMORY for " + moment;
  finding.expected = "an error of the entry call, by which every rank ends, or right results";
  finding.seen = std::move(seen);
  finding.message = std::move(message);
  return finding;
}

// The answer says it, or the engine does.
bool Speaks(const Run& run, int32_t rank) {
  if (!At(run.outcomes, rank).reason.empty()) return true;
  const auto& events = At(run.traces, rank).events;
  return std::any_of(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::kCallEnd && event.status == SPF_NO_MEMORY;
  });
}

// The rank without memory first: others that hang or die wait for it, or were handed what it made.
std::vector<int32_t> RanksFrom(const Run& run, int32_t first) {
  std::vector<int32_t> ranks{first};
  for (int32_t rank = 0; rank < Length(run.outcomes); ++rank) {
    if (rank != first && !At(run.traces, rank).events.empty()) ranks.push_back(rank);
  }
  return ranks;
}

std::string Problem(Kind kind) {
  switch (kind) {
    case Kind::kDied:
      return "a rank without memory takes a process with it";
    case Kind::kHung:
      return "a rank without memory leaves others waiting: end the entry call with an error";
    case Kind::kRefused:
      return "the status of mem_alloc is not looked at: its address, 0, is used";
    case Kind::kRejected:
    case Kind::kUnsupported:
      return "no memory is no property of the configuration: answer SPF_NO_MEMORY";
    default:
      return "";
  }
}

bool AllWentOn(const Run& run) {
  return std::all_of(run.outcomes.begin(), run.outcomes.end(),
                     [](const EngineOutcome& outcome) { return outcome.kind == Kind::kOk; });
}

}  // namespace

bool WasStarved(const Run& run, int32_t rank) {
  const auto& events = At(run.traces, rank).events;
  return std::any_of(events.begin(), events.end(),
                     [](const Event& event) { return event.kind == EventKind::kNoMemory; });
}

StarvedEnd EndOfStarved(const Run& run, int32_t rank) {
  if (AllWentOn(run)) return StarvedEnd::kWentOn;
  return At(run.outcomes, rank).kind == Kind::kFailed ? StarvedEnd::kEnded : StarvedEnd::kNeither;
}

CheckResult JudgeStarved(const Run& run, int32_t rank, const std::string& moment) {
  CheckResult result;
  result.judged.insert(kStarved);
  for (const int32_t each : RanksFrom(run, rank)) {
    const EngineOutcome& outcome = At(run.outcomes, each);
    const std::string problem = Problem(outcome.kind);
    if (problem.empty()) continue;
    const std::string who = each == rank ? "" : "rank " + std::to_string(each) + ": ";
    result.findings.push_back(Wrong(rank, moment, who + Words(outcome), problem));
    return result;
  }
  const EngineOutcome& own = At(run.outcomes, rank);
  if (EndOfStarved(run, rank) == StarvedEnd::kNeither) {
    result.findings.push_back(Wrong(rank, moment, Words(own),
                                    "the rank without memory answers nothing, and the run ends "
                                    "all the same"));
  } else if (own.kind == Kind::kFailed && !Speaks(run, rank)) {
    result.findings.push_back(Wrong(rank, moment, Words(own),
                                    "a rank without memory fails without a word: answer "
                                    "SPF_NO_MEMORY, or call explain"));
  }
  return result;
}

Finding WentOnWrong(const Finding& found, const std::string& moment) {
  Finding finding = found;
  finding.requirement = kStarved;
  finding.operation = "mem_alloc, answered SPF_NO_MEMORY for " + moment;
  if (!found.operation.empty()) finding.operation += "; then: " + found.operation;
  finding.message = "the run goes on after an allocation had no memory, and is wrong (" +
                    found.requirement + ": " + found.message + ")";
  return finding;
}

}  // namespace shardproof
