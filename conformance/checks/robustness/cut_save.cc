#include "conformance/checks/robustness/cut_save.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "conformance/checks/robustness/robustness.h"

namespace shardproof {
namespace {

using Kind = EngineOutcome::Kind;

bool TakesPart(const Trace& trace) {
  return std::any_of(trace.events.begin(), trace.events.end(),
                     [](const Event& event) { return event.kind == EventKind::kCallBegin; });
}

// Its load answered SPF_OK.
bool Takes(const Run& run, size_t rank) {
  const Trace& trace = run.traces[rank];
  return std::any_of(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return event.kind == EventKind::kCallEnd && event.status == SPF_OK &&
           trace.Text(event.text).starts_with("load");
  });
}

// Neither taken nor refused. Of others a rank that refuses may end what they wait for.
bool EndsBadly(const EngineOutcome& outcome) {
  return outcome.kind != Kind::kOk && outcome.kind != Kind::kFailed &&
         outcome.kind != Kind::kAborted;
}

std::string AfterCut(const std::string& moment) {
  return "load, after a save that ended " + moment;
}

Finding Wrong(size_t rank, const std::string& moment, std::string seen, std::string message) {
  Finding finding;
  finding.requirement = kCutSave;
  finding.rank = static_cast<int>(rank);
  finding.operation = AfterCut(moment);
  finding.expected = "the state that was being saved, or an error of load on every rank";
  finding.seen = std::move(seen);
  finding.message = std::move(message);
  return finding;
}

// The first rank that takes part and for which it holds.
template <class F>
std::optional<size_t> First(const Run& run, F&& holds) {
  for (size_t rank = 0; rank < run.outcomes.size(); ++rank) {
    if (TakesPart(run.traces[rank]) && holds(rank)) return rank;
  }
  return std::nullopt;
}

std::optional<size_t> FirstThatTakes(const Run& run) {
  return First(run, [&](size_t rank) { return Takes(run, rank); });
}

// One that says why, if there is one.
std::optional<size_t> FirstThatRefuses(const Run& run) {
  const auto speaks = First(run, [&](size_t rank) {
    return !Takes(run, rank) && run.outcomes[rank].kind == Kind::kFailed;
  });
  return speaks ? speaks : First(run, [&](size_t rank) { return !Takes(run, rank); });
}

std::string Words(const EngineOutcome& outcome) {
  std::string text = OutcomeName(outcome.kind);
  if (!outcome.call.empty()) text += " in " + outcome.call;
  return outcome.reason.empty() ? text : text + ": " + outcome.reason;
}

// Nothing: it is as it may be.
std::optional<Finding> AnswerProblem(const Run& run, const std::string& moment, bool complete) {
  if (const auto rank = First(run, [&](size_t one) { return EndsBadly(run.outcomes[one]); })) {
    return Wrong(*rank, moment, Words(run.outcomes[*rank]),
                 "a checkpoint whose save was cut short is neither loaded nor refused");
  }
  const auto takes = FirstThatTakes(run), refuses = FirstThatRefuses(run);
  if (!takes && !refuses) return Wrong(0, moment, "no rank was asked", "nothing was loaded");
  if (!refuses) return std::nullopt;
  const EngineOutcome& said = run.outcomes[*refuses];
  if (takes) {
    return Wrong(*takes, moment,
                 "rank " + std::to_string(*refuses) + ": " + Words(said) + "; rank " +
                     std::to_string(*takes) + ": load answered SPF_OK",
                 "one rank refuses a checkpoint whose save was cut short, and another one takes "
                 "it: agree before anything is installed");
  }
  if (complete) {
    return Wrong(*refuses, moment, Words(said),
                 "save had returned on every rank, but its checkpoint is not complete");
  }
  if (said.kind != Kind::kFailed || said.reason.empty()) {
    return Wrong(*refuses, moment, Words(said),
                 "a checkpoint whose save was cut short is refused without a word: call explain");
  }
  return std::nullopt;
}

}  // namespace

LoadAnswer AnswerToCutSave(const Run& run) {
  const bool takes = FirstThatTakes(run).has_value(), refuses = FirstThatRefuses(run).has_value();
  if (takes == refuses) return LoadAnswer::kNeither;
  return takes ? LoadAnswer::kTaken : LoadAnswer::kRefused;
}

CheckResult JudgeCutSave(const Run& run, const std::string& moment, bool complete) {
  CheckResult result;
  result.judged.insert(kCutSave);
  if (auto problem = AnswerProblem(run, moment, complete))
    result.findings.push_back(std::move(*problem));
  return result;
}

Finding LoadedWrong(const Finding& found, const std::string& moment, bool before) {
  Finding finding = found;
  finding.requirement = kCutSave;
  finding.operation = AfterCut(moment) + (before ? ", of the checkpoint before it" : "");
  if (!found.operation.empty()) finding.operation += ": " + found.operation;
  finding.message =
      std::string(before ? "what is left of a save that was cut short keeps training from going on "
                           "from the checkpoint before it"
                         : "what is left of a save that was cut short is loaded as if it were "
                           "whole") +
      " (" + found.requirement + ": " + found.message + ")";
  return finding;
}

}  // namespace shardproof
