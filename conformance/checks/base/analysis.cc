#include "conformance/checks/base/analysis.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "conformance/checks/base/of_the_case.h"
#include "conformance/common/at.h"
#include "conformance/trace/names.h"

namespace shardproof {

namespace {

constexpr const char* kPhases[] = {"FWD", "BWD", "DGRAD", "WGRAD"};
constexpr const char* kKernels[] = {
    "CUSTOM",          "FILL",       "DISCARD",    "AXPBY", "SUM_SQUARES",
    "COUNT_NONFINITE", "COUNT_ZERO", "NORM_SCALE", "ADAMW", "GEMM"};
constexpr const char* kCollectives[] = {
    "?",          "all_gather", "all_gather_v", "reduce_scatter",
    "all_reduce", "broadcast",  "all_to_all_v", "send",
    "recv"};
constexpr const char* kResults[] = {"?", "PARAM", "GRAD", "LOSS", "GRAD_NORM", "ZERO_COUNT"};
constexpr const char* kHooks[] = {"?",
                                  "FORWARD",
                                  "PRE_FORWARD",
                                  "REGISTER_BACKWARD",
                                  "POST_FORWARD",
                                  "ROOT_PRE_BACKWARD",
                                  "PRE_BACKWARD",
                                  "POST_BACKWARD",
                                  "ACCUMULATE",
                                  "ROOT_POST_BACKWARD",
                                  "FINISH_GRAD_SYNC",
                                  "INSTALL_WEIGHTS",
                                  "START_PARAM_SYNC",
                                  "ZERO_GRAD",
                                  "OPTIMIZER_STEP"};

template <size_t N>
std::string Name(const char* const (&names)[N], int32_t index) {
  return index >= 0 && static_cast<size_t>(index) < N ? names[index] : "?" + std::to_string(index);
}

}  // namespace

// Nodes and modules by their names in the model, as far as the case tells them.
graph::Names Analysis::NamesOfTheCase() const {
  graph::Names names;
  names.node = [this](int32_t rank, const Event& event) {
    return has_case() ? NodeName(rank, event) : std::string();
  };
  names.module = [this](int32_t rank, const Event& event) {
    return has_case() ? Facts(event.instance).ModuleName(event.module, rank) : std::string();
  };
  return names;
}

Analysis::Analysis(const Run& run) : run_(run), lowered_(run.traces, NamesOfTheCase()) {
  for (const Trace& trace : run.traces) {
    auto& by_instance = calls_.emplace_back();
    auto& came_back = came_back_.emplace_back();
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kCallEnd && event.status == SPF_OK)
        came_back.emplace(event.instance, event.call);
      if (event.kind != EventKind::kCallBegin || event.call < 0) continue;
      if (size_t(event.call) >= trace.events.size()) continue;  // not so many calls began
      if (by_instance.size() <= event.instance) by_instance.resize(event.instance + size_t{1});
      auto& calls = by_instance[event.instance];
      if (calls.size() <= size_t(event.call)) calls.resize(size_t(event.call) + 1);
      calls[size_t(event.call)] = {std::string(trace.Text(event.text)), event.id};
    }
    if (trace.end != TraceEnd::kComplete) ended_well_ = false;
  }
  for (const EngineOutcome& outcome : run.outcomes) {
    if (outcome.kind != EngineOutcome::Kind::kOk) ended_well_ = false;
  }
  BuildFacts();
}

void Analysis::BuildFacts() {
  if (run_.spec == nullptr) {
    why_ = "the traces come without a case";
    return;
  }
  if (!run_.spec->illegal.empty()) {
    why_ = "the case is illegal, so no engine runs it";
    return;
  }
  if (static_cast<int32_t>(run_.traces.size()) != run_.spec->world) {
    why_ = "there are " + std::to_string(run_.traces.size()) + " traces for a world of " +
           std::to_string(run_.spec->world);
    return;
  }
  try {
    for (const InstanceSpec& spec : run_.spec->instances) {
      instances_.push_back(std::make_unique<InstanceFacts>(spec, run_.spec->world));
    }
  } catch (const std::exception& error) {
    why_ = std::string("the case's facts cannot be built: ") + error.what();
    return;
  }
  if (const auto stranger = FindStranger(run_.traces, instances_)) why_ = StrangerText(*stranger);
}

const Flow& Analysis::flow() const {
  if (flow_ == nullptr) flow_ = std::make_unique<const Flow>(run_, instances_);
  return *flow_;
}

bool Analysis::bounded_updates() const {
  return std::any_of(run_.traces.begin(), run_.traces.end(),
                     [](const Trace& trace) { return trace.bounded_updates; });
}

bool Analysis::legal() const { return run_.spec == nullptr || run_.spec->illegal.empty(); }

std::string Analysis::flow_why() const { return has_case() ? flow().why() : why_; }

std::string Analysis::CallName(int32_t rank, int instance, int32_t call) const {
  if (call < 0) return "outside entry calls";
  const auto& by_instance = calls_[size_t(rank)];
  if (size_t(instance) >= by_instance.size() ||
      size_t(call) >= by_instance[size_t(instance)].size()) {
    return "call " + std::to_string(call);
  }
  const CallText& text = by_instance[size_t(instance)][size_t(call)];
  return text.text + (text.step >= 0 ? " " + std::to_string(text.step) : "");
}

bool Analysis::CameBack(int32_t rank, int instance, int32_t call) const {
  return came_back_[size_t(rank)].contains({instance, call});
}

int32_t Analysis::StepOf(int32_t rank, int instance, int32_t call) const {
  const auto& by_instance = calls_[size_t(rank)];
  if (call < 0 || size_t(instance) >= by_instance.size() ||
      size_t(call) >= by_instance[size_t(instance)].size()) {
    return -1;
  }
  return by_instance[size_t(instance)][size_t(call)].step;
}

std::string Analysis::NodeName(int32_t rank, const Event& event) const {
  if (has_case() && event.id >= 0 && event.id < Facts(event.instance).node_count(rank))
    return Facts(event.instance).Node(event.id, rank).name;
  return "node " + std::to_string(event.id);
}

std::string Analysis::PublishedName(int32_t rank, const Event& event) const {
  const bool of_param = event.result == SPF_RESULT_PARAM || event.result == SPF_RESULT_GRAD;
  if (!of_param || !has_case() || event.id < 0) return "";
  const InstanceFacts& facts = Facts(event.instance);
  return event.id < facts.n_params(rank) ? " " + facts.Param(rank, event.id).name : "";
}

std::string Analysis::Describe(int32_t rank, int64_t index) const {
  const Trace& trace = run_.traces[size_t(rank)];
  const Event& event = trace.events[size_t(index)];
  const auto microbatch =
      event.microbatch >= 0 ? ", microbatch " + std::to_string(event.microbatch) : std::string();
  switch (event.kind) {
    case EventKind::kCompute:
      return "compute " + NodeName(rank, event) + " " + Name(kPhases, event.phase) + microbatch;
    case EventKind::kCollective: {
      const std::string group = event.group >= 0 ? trace.groups[size_t(event.group)].name : "?";
      return Name(kCollectives, event.collective) + " on " + group;
    }
    case EventKind::kLaunch:
      return "launch " + Name(kKernels, event.id);
    case EventKind::kPublish:
      return "publish " + Name(kResults, event.result) + PublishedName(rank, event);
    case EventKind::kMark: {
      const std::string module =
          has_case() ? Facts(event.instance).ModuleName(event.module, rank) : "";
      return "mark " + Name(kHooks, event.id) + " of " + module + microbatch;
    }
    case EventKind::kAlloc:
      return "mem_alloc of " + std::to_string(event.count) + " bytes";
    case EventKind::kFree:
      return "mem_free of block " + std::to_string(event.alloc);
    case EventKind::kRelease:
      return "block " + std::to_string(event.alloc) + " given back";
    case EventKind::kGroupCreate:
      return "group_create " + std::string(trace.Text(event.text));
    case EventKind::kGroupAsk:
      return "group " + std::string(trace.Text(event.text));
    case EventKind::kRefused:
      return std::string(trace.Text(event.text));
    default:
      return std::string(trace_names::kKinds[static_cast<size_t>(event.kind)]) + " (event " +
             std::to_string(index) + ")";
  }
}

Finding Analysis::At(const char* requirement, int32_t rank, int64_t index) const {
  const Trace& trace = run_.traces[size_t(rank)];
  const Event& event = trace.events[size_t(index)];
  Finding finding;
  finding.requirement = requirement;
  finding.rank = trace.rank;
  finding.event = index;
  finding.step = StepOf(rank, event.instance, event.call);
  if (event.stream >= 0 && size_t(event.stream) < trace.streams.size()) {
    finding.stream = trace.streams[size_t(event.stream)];
  }
  finding.operation = Describe(rank, index);
  if (event.place >= 0) finding.operation += " at " + std::string(trace.Text(event.place));
  finding.operation += ", in " + CallName(rank, event.instance, event.call);
  return finding;
}

Finding Analysis::AtCall(const char* requirement, int32_t rank, int instance, int32_t call,
                         int32_t as_on) const {
  Finding finding;
  finding.requirement = requirement;
  finding.rank = rank;
  finding.step = StepOf(as_on, instance, call);
  finding.operation = CallName(as_on, instance, call);
  return finding;
}

std::string Analysis::ContentText(const Content& content) const {
  const auto name = [&] {
    return Facts(size_t(content.instance)).ByKey(content.param).name + "[" +
           std::to_string(content.element) + "]";
  };
  switch (content.kind) {
    case Content::Kind::kPoison:
      return "bytes that were never written, or were freed or discarded";
    case Content::Kind::kFill:
      return "a constant";
    case Content::Kind::kParam:
      return name() + " as of " + CallName(0, content.instance, content.tag);
    case Content::Kind::kGrad:
      return "the gradient of " + name();
    case Content::Kind::kMixed:
      return "a sum of things that do not belong together";
    default:
      return "bytes of unknown origin";
  }
}

void Judge(CheckResult& result, std::initializer_list<const char*> requirements) {
  for (const char* id : requirements) result.judged.insert(id);
}

void CannotJudge(CheckResult& result, std::initializer_list<const char*> requirements,
                 const std::string& why) {
  for (const char* id : requirements) result.not_checkable.push_back({id, why});
}

void NeedsCase(const Analysis& a, CheckResult& result,
               std::initializer_list<const char*> requirements) {
  if (a.run().spec == nullptr) return NotAsked(result, requirements, a.flow_why());
  CannotJudge(result, requirements, a.flow_why());
}

void NotAsked(CheckResult& result, std::initializer_list<const char*> requirements,
              const std::string& why) {
  for (const char* id : requirements)
    result.not_checkable.push_back({id, why, NotCheckable::Kind::kNotAsked});
}

void FindingSink::Add(Finding finding) {
  if (++seen_[finding.requirement] <= limit_) result_.findings.push_back(std::move(finding));
}

void FindingSink::Add(Finding where, std::string expected, std::string seen, std::string message) {
  where.expected = std::move(expected);
  where.seen = std::move(seen);
  where.message = std::move(message);
  Add(std::move(where));
}

FindingSink::~FindingSink() {
  for (const auto& [requirement, count] : seen_) {
    if (count > limit_) {
      result_.notes.push_back(requirement + ": " + std::to_string(count - limit_) +
                              " more findings of this kind");
    }
  }
}

}  // namespace shardproof
