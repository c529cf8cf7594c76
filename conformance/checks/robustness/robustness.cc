#include "conformance/checks/robustness/robustness.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/robustness/answers.h"
#include "conformance/checks/robustness/left_behind.h"
#include "conformance/common/at.h"

namespace shardproof {

using Kind = EngineOutcome::Kind;

const char* OutcomeName(Kind kind) {
  static constexpr const char* kNames[] = {"ok",     "unsupported", "rejected",
                                           "failed", "refused",     "aborted",
                                           "died",   "hung",        "suite error"};
  return kNames[static_cast<size_t>(kind)];
}

namespace {

bool TakesPart(const Run& run, int32_t rank) {
  return size_t(rank) < run.traces.size() && !At(run.traces, rank).events.empty();
}

Finding Of(const char* requirement, int32_t rank, const EngineOutcome& outcome,
           std::string expected, std::string message) {
  Finding finding;
  finding.requirement = requirement;
  finding.rank = rank;
  finding.operation = outcome.call;
  finding.expected = std::move(expected);
  finding.seen = std::string(OutcomeName(outcome.kind)) +
                 (outcome.reason.empty() ? "" : ": " + outcome.reason);
  finding.message = std::move(message);
  return finding;
}

// The first collective of the create call that ends with this event, or -1.
int64_t CollectiveBefore(const Trace& trace, int64_t create_end) {
  const Event& end = At(trace.events, create_end);
  for (int64_t i = 0; i < create_end; ++i) {
    const Event& event = At(trace.events, i);
    if (event.kind == EventKind::kCollective && event.instance == end.instance &&
        event.call == end.call)
      return i;
  }
  return -1;
}

bool Explained(const Trace& trace) {
  return std::any_of(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return event.kind == EventKind::kExplain && !trace.Text(event.text).empty();
  });
}

bool Refused(const Trace& trace) {
  return std::any_of(trace.events.begin(), trace.events.end(),
                     [](const Event& event) { return event.kind == EventKind::kRefused; });
}

bool WrongTwin(const Case& spec) {
  return std::any_of(spec.instances.begin(), spec.instances.end(),
                     [](const InstanceSpec& one) { return HasWrongTwin(one); });
}

void JudgeIllegal(const Analysis& a, CheckResult& result, FindingSink& sink) {
  const Run& run = a.run();
  const char* requirement = WrongTwin(*run.spec) ? "PG-16" : "GE-20";
  Judge(result, {requirement, "GE-22"});
  for (size_t rank = 0; rank < run.outcomes.size(); ++rank) {
    const EngineOutcome& outcome = run.outcomes[rank];
    const auto r = static_cast<int32_t>(rank);
    // A knob that was not read: the runner ended the case before the engine could be blamed.
    if (!TakesPart(run, r) || outcome.kind == Kind::kUnsupported) continue;
    const bool from_create = outcome.call.starts_with("create");
    if (outcome.kind != Kind::kRejected || !from_create) {
      sink.Add(Of(requirement, r, outcome, "rejected by create",
                  "the configuration is illegal (" + run.spec->illegal +
                      "), but create does not answer SPF_REJECTED"));
      continue;
    }
    if (run.traces[rank].provides.calls && !Explained(run.traces[rank])) {
      sink.Add(Of("GE-22", r, outcome, "a reason in words",
                  "create rejects without saying why: call explain first"));
    }
  }
}

// What the engine itself answered; that it did not read a knob, the runner says after create.
void JudgeRefusingCreate(const Analysis& a, size_t rank, size_t instance, FindingSink& sink) {
  const Trace& trace = a.traces()[rank];
  const int64_t end = RefusingCreate(trace, instance);
  const int64_t event = end < 0 ? -1 : CollectiveBefore(trace, end);
  if (event < 0) return;
  const auto r = static_cast<int32_t>(rank);
  const bool rejects = At(trace.events, end).status == SPF_REJECTED;
  Finding finding = a.At("GE-21", r, event);
  finding.expected =
      "no collective before create answers " + std::string(rejects ? "rejected" : "unsupported");
  finding.seen = a.Describe(r, event);
  finding.message =
      "create issues a collective and then refuses the case: look at the configuration first";
  sink.Add(std::move(finding));
}

// Where one of two ranks declined: load may, of what another leg saved.
const char* DecliningCall(const EngineOutcome& one, const EngineOutcome& other) {
  const auto in_load = [](const EngineOutcome& outcome) {
    return outcome.kind == EngineOutcome::Kind::kUnsupported && outcome.call == "load";
  };
  return in_load(one) || in_load(other) ? "load" : "create";
}

// A rank that rejects or declines what another one accepts.
void JudgeSameAnswer(const Run& run, size_t instance, FindingSink& sink) {
  int32_t first = -1;
  Answer said = Answer::kNone;
  for (size_t rank = 0; rank < run.outcomes.size(); ++rank) {
    const Answer answer = AnswerOn(run, rank, instance);
    if (answer == Answer::kNone) continue;
    if (first < 0) {
      first = static_cast<int32_t>(rank);
      said = answer;
    }
    if (answer == said) continue;
    Finding finding;
    finding.requirement = "GE-24";
    finding.rank = static_cast<int32_t>(rank);
    finding.operation = DecliningCall(run.outcomes[static_cast<size_t>(first)], run.outcomes[rank]);
    if (InstancesOf(run) > 1) finding.operation += " of engine " + std::to_string(instance);
    finding.expected = std::string(AnswerName(said)) + ", as on rank " + std::to_string(first);
    const bool fails = run.outcomes[rank].kind == EngineOutcome::Kind::kFailed;
    finding.seen = answer == Answer::kRuns && fails ? "failed" : AnswerName(answer);
    if (!run.outcomes[rank].reason.empty()) finding.seen += ": " + run.outcomes[rank].reason;
    finding.message =
        "ranks give different answers to the same configuration: the others would wait for ever";
    sink.Add(std::move(finding));
  }
}

void JudgeAnswers(const Analysis& a, CheckResult& result, FindingSink& sink) {
  const Run& run = a.run();
  Judge(result, {"GE-21", "GE-24"});
  for (size_t i = 0; i < InstancesOf(run); ++i) {
    for (size_t rank = 0; rank < run.outcomes.size(); ++rank) JudgeRefusingCreate(a, rank, i, sink);
    JudgeSameAnswer(run, i, sink);
  }
}

void JudgeSurvival(const Analysis& a, CheckResult& result, FindingSink& sink) {
  const Run& run = a.run();
  Judge(result, {"GE-23", "GE-26", "GE-27"});
  for (size_t rank = 0; rank < run.outcomes.size(); ++rank) {
    const EngineOutcome& outcome = run.outcomes[rank];
    const auto r = static_cast<int32_t>(rank);
    switch (outcome.kind) {
      case Kind::kRejected:
        if (a.legal()) {
          sink.Add(Of("GE-23", r, outcome, "the case runs",
                      "the configuration is legal, but create rejects it"));
        }
        break;
      case Kind::kDied:
        sink.Add(Of("GE-26", r, outcome, "the engine survives",
                    "rank " + std::to_string(rank) + " died"));
        break;
      case Kind::kFailed:
        // The reason is a refused call, which is a finding of its own.
        if (run.traces[rank].provides.calls && Refused(run.traces[rank])) break;
        sink.Add(Of("GE-26", r, outcome, "SPF_OK", "an entry call failed"));
        break;
      case Kind::kHung:
        sink.Add(Of("GE-27", r, outcome, "the run ends",
                    "rank " + std::to_string(rank) + " makes no progress"));
        break;
      default:
        break;
    }
  }
}

// A refused call breaks GE-25, and, told with it, the requirement that it would have broken.
void JudgeRefusals(const Analysis& a, CheckResult& result, FindingSink& sink) {
  const auto without = std::find_if(a.traces().begin(), a.traces().end(),
                                    [](const Trace& trace) { return !trace.provides.calls; });
  if (without == a.traces().end()) {
    Judge(result, {"GE-25"});
  } else {
    CannotJudge(result, {"GE-25"},
                "rank " + std::to_string(without->rank) + "'s trace has no calls");
  }
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    const Trace& trace = a.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      if (trace.events[i].kind != EventKind::kRefused) continue;
      Finding finding = a.At("GE-25", rank, static_cast<int64_t>(i));
      finding.expected = "a call that can be carried out";
      finding.seen = std::string(trace.Text(trace.events[i].text2));
      finding.message =
          "the call " + std::string(trace.Text(trace.events[i].text)) + " was refused";
      sink.Add(finding);
      finding.requirement = At(kBreakable, trace.events[i].breaks);
      if (finding.requirement.empty()) continue;
      Judge(result, {finding.requirement.c_str()});
      sink.Add(std::move(finding));
    }
  }
}

std::set<std::string> KnobsRead(const Trace& trace, int instance) {
  std::set<std::string> names;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kKnob && event.instance == instance)
      names.emplace(trace.Text(event.text));
  }
  return names;
}

void JudgeContract(const Analysis& a, CheckResult& result, FindingSink& sink) {
  if (a.run().spec == nullptr || !a.legal() || !a.ended_well()) return;
  for (const Trace& trace : a.traces()) {
    if (!trace.provides.calls) return CannotJudge(result, {"GE-28"}, "a trace has no calls");
  }
  Judge(result, {"GE-28"});
  for (size_t i = 0; i < a.n_instances(); ++i) {
    for (int32_t rank = 0; rank < a.ranks(); ++rank) {
      if (!a.Facts(i).InGrid(rank) || !TakesPart(a.run(), rank)) continue;
      const std::set<std::string> read = KnobsRead(a.trace(rank), static_cast<int>(i));
      for (const std::string& knob : ContractKnobs()) {
        if (read.contains(knob)) continue;
        Finding finding;
        finding.requirement = "GE-28";
        finding.rank = rank;
        finding.operation = "create";
        finding.expected = "knob " + knob + " is read";
        finding.seen = "never asked for";
        finding.message =
            "the engine trains without reading " + knob + ": it uses a value of its own";
        sink.Add(std::move(finding));
      }
    }
  }
}

}  // namespace

CheckResult CheckRobustness(const Analysis& a) {
  CheckResult result;
  FindingSink sink(result, 16);
  const Run& run = a.run();
  if (!run.outcomes.empty()) {
    if (!a.legal()) JudgeIllegal(a, result, sink);
    JudgeAnswers(a, result, sink);
    JudgeSurvival(a, result, sink);
  } else {
    const std::string why =
        "the traces do not tell how the ranks ended: provide calls, of all ranks";
    CannotJudge(result, {"GE-21", "GE-24", "GE-26", "GE-27"}, why);
    if (run.spec != nullptr) CannotJudge(result, {"GE-23"}, why);
    if (!a.legal()) CannotJudge(result, {WrongTwin(*run.spec) ? "PG-16" : "GE-20", "GE-22"}, why);
  }
  JudgeRefusals(a, result, sink);
  JudgeContract(a, result, sink);
  result.Merge(JudgeLeftBehind(run));
  return result;
}

}  // namespace shardproof
