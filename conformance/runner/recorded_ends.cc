#include "conformance/runner/recorded_ends.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "conformance/checks/base/entry_answer.h"
#include "conformance/checks/base/of_the_case.h"
#include "conformance/checks/robustness/answers.h"
#include "conformance/common/at.h"
#include "conformance/runner/rank_config.h"
#include "conformance/runner/rank_main.h"
#include "conformance/trace/reader.h"

namespace shardproof {

namespace {

using Kind = EngineOutcome::Kind;

struct RecordedCall {
  std::string name;  // "train_step"
  int32_t step = -1;
  bool ended = false;
  uint8_t status = SPF_OK;
  HostAnswers before;  // it ended
  std::string said;    // by the engine in it, last (explain)
  std::string Text() const { return step < 0 ? name : name + " " + std::to_string(step); }
};

// The entry calls into each engine instance, in the order in which they began.
using CallsOfInstances = std::map<int32_t, std::vector<RecordedCall>>;

CallsOfInstances CallsOf(const Trace& trace) {
  CallsOfInstances all;
  std::map<std::pair<int32_t, std::string>, std::vector<size_t>>
      open;                         // by name; the last one ends
  std::map<int32_t, bool> refused;  // by instance
  std::map<int32_t, std::string> said;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kRefused) refused[event.instance] = true;
    if (event.kind == EventKind::kExplain) said[event.instance] = trace.Text(event.text);
    if (event.kind != EventKind::kCallBegin && event.kind != EventKind::kCallEnd) continue;
    const std::string name(trace.Text(event.text));
    std::vector<RecordedCall>& calls = all[event.instance];
    std::vector<size_t>& begun = open[{event.instance, name}];
    if (event.kind == EventKind::kCallBegin) {
      begun.push_back(calls.size());
      said.erase(event.instance);
      calls.push_back({name, event.id, false, SPF_OK, {}, ""});
    } else if (!begun.empty()) {
      calls[begun.back()].ended = true;
      calls[begun.back()].status = event.status;
      calls[begun.back()].before = {refused[event.instance], event.flag};
      calls[begun.back()].said = said[event.instance];
      begun.pop_back();
    }
  }
  return all;
}

std::string NameOf(char letter) {
  switch (letter) {
    case 'c':
      return "create";
    case 'd':
      return "destroy";
    case 't':
      return "train_step";
    case 'e':
      return "eval_step";
    case 's':
      return "save";
    default:
      return "load";
  }
}

bool Optional(char letter) { return letter == 'e' || letter == 's' || letter == 'l'; }

// The first call that answered something else than ok, or never ended.
std::optional<EngineOutcome> FirstFailure(const std::vector<RecordedCall>& calls) {
  for (const RecordedCall& call : calls) {
    if (!call.ended)
      return EngineOutcome{Kind::kHung, call.Text(),
                           call.Text() +
                               " began and never ended, although the footer says "
                               "that the trace is complete"};
    if (call.status == SPF_OK) continue;
    const EntryAnswer answer = AnswerOf(call.name, call.status, call.before);
    return EngineOutcome{answer.kind, call.Text(), answer.why.empty() ? call.said : answer.why};
  }
  return std::nullopt;
}

// The calls of the case's script, one by one.
EngineOutcome FollowScript(const std::vector<RecordedCall>& calls, const InstanceSpec& spec) {
  std::vector<ScriptCall> script = ExpandScript(spec);
  if (script.empty() || script.back().letter != 'd') script.push_back({'d', -1});
  std::string before;
  for (size_t i = 0; i < script.size(); ++i) {
    const RecordedCall due{
        NameOf(script[i].letter), static_cast<int32_t>(script[i].step), false, SPF_OK, {}, ""};
    if (i >= calls.size())
      return {Kind::kHung, due.Text(),
              "the case's script goes on to " + due.Text() + ", but the trace ends " +
                  (before.empty() ? "before any entry call" : "after " + before) +
                  ", although its footer says that it is complete"};
    if (calls[i].Text() != due.Text()) {
      // An engine may lack what is optional; the run then goes on to destroy.
      if (Optional(script[i].letter) && calls[i].name == "destroy")
        return {Kind::kUnsupported, due.Text(),
                calls[i].said.empty() ? "the trace has no " + due.name : calls[i].said};
      return {Kind::kHung, due.Text(),
              "the case's script goes on to " + due.Text() + ", the trace to " + calls[i].Text()};
    }
    before = calls[i].Text();
    RecordedCall made = calls[i];
    made.before.another_leg = spec.resumed >= 0;
    if (const auto failure = FirstFailure({made})) return *failure;
  }
  return {};
}

// One of the case's engines. What create did not read it could neither accept nor reject.
EngineOutcome EndOfInstance(const std::vector<RecordedCall>& calls, const Trace& trace,
                            const Case& c, size_t instance) {
  const std::vector<std::string> unread = UnreadKnobs(c, trace, instance);
  const EngineOutcome outcome = FollowScript(calls, c.instances[instance]);
  const bool rejects = outcome.kind == Kind::kRejected && c.illegal.empty();
  const bool only_created = calls.size() <= 2 && !FirstFailure(calls);
  if (!unread.empty() && (rejects || only_created))
    return {Kind::kUnsupported, "create", UnreadText(unread.front())};
  return outcome;
}

// With a case; nothing is missing then. An engine that declines does not hide how others ended.
EngineOutcome EndOfRank(const Trace& trace, const Case& c) {
  CallsOfInstances all = CallsOf(trace);
  EngineOutcome end;
  for (size_t i = 0; i < c.instances.size(); ++i) {
    if (!TakesPart(c.instances[i], trace.rank)) continue;
    EngineOutcome outcome = EndOfInstance(all[static_cast<int32_t>(i)], trace, c, i);
    if (outcome.kind != Kind::kOk && outcome.kind != Kind::kUnsupported) return outcome;
    if (end.kind == Kind::kOk) end = std::move(outcome);
  }
  return end;
}

// Without one; nothing: the trace does not tell.
std::optional<EngineOutcome> EndOfRank(const Trace& trace) {
  bool any = false;
  for (const auto& [instance, calls] : CallsOf(trace)) {
    any |= !calls.empty();
    if (const auto failure = FirstFailure(calls)) return failure;
  }
  return any ? std::optional<EngineOutcome>(EngineOutcome{}) : std::nullopt;
}

EngineOutcome EndByFooter(const Trace& trace) {
  const std::string said = trace.end_reason.empty() ? "" : ": " + trace.end_reason;
  if (trace.end == TraceEnd::kDied)
    return {Kind::kDied, "the run", "its footer says that it died" + said};
  return {Kind::kAborted, "the run", "its footer says that the run was aborted" + said};
}

// Somebody ends a run. If no trace says who, the first rank that was ended stands for it.
void NameACause(std::vector<EngineOutcome>& ends) {
  const auto cause = [](const EngineOutcome& end) {
    return end.kind != Kind::kOk && end.kind != Kind::kAborted;
  };
  if (std::any_of(ends.begin(), ends.end(), cause)) return;
  for (EngineOutcome& end : ends) {
    if (end.kind != Kind::kAborted) continue;
    end.kind = Kind::kHung;
    end.reason += std::string(end.reason.empty() ? "it was aborted" : "") +
                  ", and no trace tells which rank ended the run";
    return;
  }
}

}  // namespace

std::vector<EngineOutcome> RecordedEnds(const std::vector<Trace>& traces, const Case* c) {
  bool early = false, silent = false;
  std::vector<EngineOutcome> ends;
  for (const Trace& trace : traces) {
    EngineOutcome& end = ends.emplace_back();
    if (trace.end != TraceEnd::kComplete) {
      early = true;
      end = EndByFooter(trace);
    } else if (!trace.provides.calls) {
      silent = true;
    } else if (c != nullptr) {
      end = EndOfRank(trace, *c);
    } else if (const auto told = EndOfRank(trace)) {
      end = *told;
    } else {
      silent = true;
    }
  }
  if (silent && !early) return {};
  NameACause(ends);
  return ends;
}

JudgedTraces JudgeTraces(std::vector<Trace> traces, const std::string& folder) {
  JudgedTraces judged;
  const std::string& id = traces.front().case_id;
  try {
    judged.c = ParseId(id);
    judged.ours = true;
  } catch (const std::exception&) {  // somebody else's program
  }
  if (judged.ours && static_cast<size_t>(judged.c.world) != traces.size()) {
    throw TraceError(folder, 0,
                     "the traces are of " + std::to_string(traces.size()) + " ranks, but case " +
                         id + " has " + std::to_string(judged.c.world));
  }
  if (judged.ours) {
    if (const auto stranger = FindStranger(traces, judged.c))
      RefuseEvent(folder, stranger->rank, stranger->event,
                  StrangerText(*stranger) + " (" + id + ")");
  }
  Run run;
  run.outcomes = RecordedEnds(traces, judged.ours ? &judged.c : nullptr);
  run.traces = std::move(traces);
  judged.verdict = judged.ours ? JudgeRun(judged.c, run) : JudgeForeign(std::move(run));
  return judged;
}

}  // namespace shardproof
