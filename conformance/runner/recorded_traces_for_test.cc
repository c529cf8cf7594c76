#include "conformance/runner/recorded_traces_for_test.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/runner/sim_run.h"

namespace shardproof::recorded {

const Traces& Good(const std::string& id, RecordLevel level) {
  static std::map<std::pair<std::string, RecordLevel>, Traces> recorded;
  Traces& traces = recorded[{id, level}];
  if (traces.empty()) {
    const Case c = ParseId(id);
    SimRunOptions options;
    options.rank.level = level;
    options.rank.folder = testing::TempDir() + "/" + id;
    traces = RunOnSim(c, MakeModels(c), Plugin("builtin:reference"), options).run.traces;
  }
  return traces;
}

Status StatusOfTraces(const Traces& traces) {
  return JudgeTraces(traces, "folder").verdict.outcome;
}

std::string Words(const Verdict& verdict) {
  std::string text = verdict.reason;
  for (const Finding& finding : verdict.result.findings)
    text += "\n" + finding.requirement + ": " + finding.seen + ": " + finding.message;
  for (const NotCheckable& row : verdict.result.not_checkable)
    text += "\n" + row.requirement + " open: " + row.why;
  return text;
}

size_t Find(const Trace& trace, EventKind kind, const std::string& name, int nth) {
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != kind || (!name.empty() && trace.Text(event.text) != name)) continue;
    if (nth-- == 0) return i;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

void CutBefore(Trace& trace, size_t event) { trace.events.resize(event); }
void CutAll(Traces& traces, EventKind kind, const std::string& name, int nth, size_t after) {
  for (Trace& trace : traces) CutBefore(trace, Find(trace, kind, name, nth) + after);
}
void ProvideNothing(Traces& traces) {
  for (Trace& trace : traces) trace.provides = {};
}
void Name(Traces& traces, const std::string& id) {
  for (Trace& trace : traces) trace.case_id = id;
}
void End(Trace& trace, TraceEnd end) {
  trace.end = end;
  trace.end_reason = "as the test says";
}
void Answer(Trace& trace, const std::string& call, spf_status status) {
  At(trace.events, Find(trace, EventKind::kCallEnd, call)).status = static_cast<uint8_t>(status);
}

}  // namespace shardproof::recorded
