#include "conformance/checks/robustness/answers.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "conformance/abi/shardproof.h"

namespace shardproof {

namespace {

using Kind = EngineOutcome::Kind;

bool OfInstance(const Event& event, size_t instance) { return event.instance == instance; }

const Event* FirstCreate(const Trace& trace, size_t instance) {
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kCallEnd && OfInstance(event, instance) && event.call == 0)
      return &event;
  }
  return nullptr;
}

bool TakesPartIn(const Trace& trace, size_t instance) {
  return std::any_of(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return event.kind == EventKind::kCallBegin && OfInstance(event, instance);
  });
}

// An entry call that an engine may lack, "save", is in the script of this instance.
bool ScriptHas(const InstanceSpec& spec, std::string_view call) {
  return (call.starts_with("eval_step") && spec.script.find('e') != std::string::npos) ||
         (call == "save" && spec.script.find('s') != std::string::npos) ||
         (call == "load" && spec.script.find('l') != std::string::npos);
}

}  // namespace

std::vector<std::string> UnreadKnobs(const Case& c, const Trace& trace, size_t instance) {
  const Event* const create = FirstCreate(trace, instance);
  if (!trace.provides.calls || create == nullptr) return {};
  if (create->status != SPF_OK && create->status != SPF_REJECTED) return {};
  std::set<std::string> read;  // or not to be read
  for (std::string& knob : ContractKnobs()) read.insert(std::move(knob));
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kKnob && OfInstance(event, instance) && event.call <= 0)
      read.emplace(trace.Text(event.text));
  }
  std::vector<std::string> unread;
  for (const auto& [name, value] : Knobs(c.instances[instance], c.world)) {
    if (!read.contains(name)) unread.push_back(name);
  }
  std::sort(unread.begin(), unread.end());
  return unread;
}

std::vector<std::string> ContractKnobs() { return {"microbatches", "lr"}; }

std::string UnreadText(const std::string& knob) {
  return "the case sets " + knob + ", which create did not read";
}

const char* AnswerName(Answer answer) {
  static constexpr const char* kNames[] = {"no answer", "runs", "rejected", "unsupported"};
  return kNames[static_cast<size_t>(answer)];
}

int64_t RefusingCreate(const Trace& trace, size_t instance) {
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != EventKind::kCallEnd || !OfInstance(event, instance)) continue;
    if (trace.Text(event.text) != "create") continue;
    if (event.status == SPF_REJECTED || event.status == SPF_UNSUPPORTED)
      return static_cast<int64_t>(i);
  }
  return -1;
}

size_t InstancesOf(const Run& run) {
  if (run.spec != nullptr) return run.spec->instances.size();
  size_t n = 0;
  for (const Trace& trace : run.traces) {
    for (const Event& event : trace.events) n = std::max(n, size_t{event.instance} + 1);
  }
  return n;
}

Answer AnswerOn(const Run& run, size_t rank, size_t instance) {
  const Trace& trace = run.traces[rank];
  const EngineOutcome& outcome = run.outcomes[rank];
  const Case* const c = run.spec;
  if (!TakesPartIn(trace, instance)) return Answer::kNone;
  const bool declined = outcome.kind == Kind::kUnsupported;
  const int64_t refused = RefusingCreate(trace, instance);
  if (refused >= 0) {
    const bool says_so = trace.events[static_cast<size_t>(refused)].status == SPF_UNSUPPORTED;
    const bool unread =
        c != nullptr && c->illegal.empty() && !UnreadKnobs(*c, trace, instance).empty();
    return says_so || (declined && unread) ? Answer::kDeclines : Answer::kRejects;
  }
  if (InstancesOf(run) == 1) {  // the rank's end is that of its only instance
    if (declined) return Answer::kDeclines;
    if (outcome.kind == Kind::kRejected) return Answer::kRejects;
  } else if (declined && c != nullptr &&
             (!UnreadKnobs(*c, trace, instance).empty() ||
              ScriptHas(c->instances[instance], outcome.call))) {
    return Answer::kDeclines;
  }
  return outcome.kind == Kind::kDied ? Answer::kNone : Answer::kRuns;
}

std::vector<bool> DeclinedInCreate(const Run& run) {
  std::vector<bool> declined(InstancesOf(run), false);
  for (size_t i = 0; i < declined.size(); ++i) {
    for (size_t rank = 0; rank < run.outcomes.size(); ++rank) {
      const Trace& trace = run.traces[rank];
      const bool in_create =
          RefusingCreate(trace, i) >= 0 || !UnreadKnobs(*run.spec, trace, i).empty();
      if (in_create && AnswerOn(run, rank, i) == Answer::kDeclines) declined[i] = true;
    }
  }
  return declined;
}

bool Declines(const Run& run, std::string* why) {
  if (run.spec == nullptr) return false;
  const auto good = [](const EngineOutcome& outcome) {
    return outcome.kind == Kind::kOk || outcome.kind == Kind::kUnsupported;
  };
  const auto complete = [](const Trace& trace) { return trace.end == TraceEnd::kComplete; };
  if (!std::all_of(run.outcomes.begin(), run.outcomes.end(), good) ||
      !std::all_of(run.traces.begin(), run.traces.end(), complete))
    return false;
  bool one_declines = false;
  for (size_t i = 0; i < run.spec->instances.size(); ++i) {
    bool declines = false, runs = false;
    for (size_t rank = 0; rank < run.outcomes.size(); ++rank) {
      const Answer answer = AnswerOn(run, rank, i);
      declines |= answer == Answer::kDeclines;
      runs |= answer == Answer::kRuns || answer == Answer::kRejects;
    }
    if (declines && runs) return false;
    one_declines |= declines;
  }
  if (!one_declines) return false;
  const auto first =
      std::find_if(run.outcomes.begin(), run.outcomes.end(),
                   [](const EngineOutcome& outcome) { return outcome.kind == Kind::kUnsupported; });
  if (first == run.outcomes.end()) return false;
  *why = first->reason.empty() ? "the engine answered SPF_UNSUPPORTED in " + first->call
                               : first->reason;
  return true;
}

}  // namespace shardproof
