#include "conformance/runner/lab/fault_lab.h"

#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "conformance/checks/check_all.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

struct CallKind {
  const char* call;
  EventKind kind;
};
constexpr CallKind kCallKinds[] = {{"group_create", EventKind::kGroupCreate},
                                   {"group_destroy", EventKind::kGroupDestroy},
                                   {"group_register", EventKind::kGroupRegister},
                                   {"group_deregister", EventKind::kGroupDeregister},
                                   {"stream_destroy", EventKind::kStreamDestroy},
                                   {"stream_sync", EventKind::kStreamSync},
                                   {"event_destroy", EventKind::kEventDestroy},
                                   {"event_record", EventKind::kRecord},
                                   {"event_wait", EventKind::kWait},
                                   {"event_sync", EventKind::kEventSync},
                                   {"mem_alloc", EventKind::kAlloc},
                                   {"mem_free", EventKind::kFree},
                                   {"copy", EventKind::kCopy},
                                   {"communicate", EventKind::kCollective},
                                   {"compute", EventKind::kCompute},
                                   {"launch", EventKind::kLaunch},
                                   {"init", EventKind::kInit},
                                   {"publish", EventKind::kPublish},
                                   {"mark", EventKind::kMark}};

EventKind KindOf(const std::string& call) {
  for (const CallKind& row : kCallKinds) {
    if (row.call == call) return row.kind;
  }
  throw std::invalid_argument("no fault of the call \"" + call + "\" can be looked up");
}

const Event& EventAt(const Trace& trace, int64_t event) { return At(trace.events, event); }

std::string StreamName(const Trace& trace, int32_t stream) {
  return stream < 0 ? std::string() : At(trace.streams, stream);
}

// The entry call during which an event happened: its call_begin.
const Event* EntryCall(const Trace& trace, int64_t event) {
  for (int64_t i = event; i >= 0; --i) {
    const Event& e = EventAt(trace, i);
    if (e.kind == EventKind::kCallBegin && e.instance == EventAt(trace, event).instance) return &e;
  }
  return nullptr;
}

}  // namespace

std::vector<int64_t> EventsOfCall(const Trace& trace, const std::string& call) {
  const EventKind kind = KindOf(call);
  std::vector<int64_t> found;
  bool in_group = false, first = true;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == EventKind::kGroupBegin) in_group = first = true;
    if (event.kind == EventKind::kGroupEnd) in_group = false;
    if (event.kind != kind || event.instance != 0) continue;
    if (kind == EventKind::kCollective && in_group && !std::exchange(first, false)) continue;
    found.push_back(static_cast<int64_t>(i));
  }
  return found;
}

FaultLab::FaultLab(const std::string& id, const Plugin& plugin, std::string folder)
    : case_(ParseId(id)), plugin_(plugin), folder_(std::move(folder)), models_(MakeModels(case_)) {
  for (size_t i = 0; i < case_.instances.size(); ++i) oracles_.push_back(RunOracle(case_, i));
  good_ = Run(std::nullopt, 1, TimingPolicy::kRandom);
}

std::optional<Fault> FaultLab::Find(int32_t rank, const std::string& call, const EventTest& test,
                                    int64_t nth, Fault::Action action, int32_t amount) const {
  const Trace& trace = good_trace(rank);
  const std::vector<int64_t> events = EventsOfCall(trace, call);
  for (size_t i = 0; i < events.size(); ++i) {
    if (!test(trace, events[i]) || nth-- > 0) continue;
    Fault fault;
    fault.call = call;
    fault.nth = static_cast<int64_t>(i);
    fault.action = action;
    fault.amount = amount;
    fault.rank = rank;
    return fault;
  }
  return std::nullopt;
}

RunData FaultLab::Run(const std::optional<Fault>& fault, uint64_t seed, TimingPolicy policy) const {
  SimRunOptions options;
  options.rank.folder = folder_ + "/" + Id(case_) + (fault ? "/" + FaultText(*fault) : "");
  std::filesystem::create_directories(options.rank.folder);
  options.rank.fault = fault;
  options.seed = seed;
  options.policy = policy;
  return RunOnSim(case_, models_, plugin_, options);
}

CheckResult FaultLab::Judge(RunData& data) const {
  data.run.spec = &case_;
  data.run.oracles.clear();
  for (const OracleRun& oracle : oracles_) data.run.oracles.push_back(&oracle);
  return CheckAll(data.run);
}

CheckResult FaultLab::JudgeFault(const Fault& fault) const {
  RunData data = Run(fault, 1, TimingPolicy::kRandom);
  return Judge(data);
}

EventTest InStep(int32_t step) {
  return [step](const Trace& trace, int64_t event) {
    const Event* call = EntryCall(trace, event);
    return call != nullptr && trace.Text(call->text) == "train_step" && call->id == step;
  };
}

EventTest InCall(const std::string& entry_call) {
  return [entry_call](const Trace& trace, int64_t event) {
    const Event* call = EntryCall(trace, event);
    return call != nullptr && trace.Text(call->text) == entry_call;
  };
}

EventTest OnStream(const std::string& name) {
  return [name](const Trace& trace, int64_t event) {
    return StreamName(trace, EventAt(trace, event).stream) == name;
  };
}

EventTest Edge(const std::string& waits, const std::string& for_stream) {
  return [waits, for_stream](const Trace& trace, int64_t event) {
    const Event& wait = EventAt(trace, event);
    if (StreamName(trace, wait.stream) != waits) return false;
    for (int64_t i = event - 1; i >= 0; --i) {
      const Event& e = EventAt(trace, i);
      if (e.kind == EventKind::kRecord && e.event == wait.event)
        return StreamName(trace, e.stream) == for_stream;
    }
    return false;
  };
}

EventTest Kernel(int32_t kernel) {
  return [kernel](const Trace& trace, int64_t event) { return EventAt(trace, event).id == kernel; };
}

EventTest Purpose(int32_t purpose) {
  return [purpose](const Trace& trace, int64_t event) {
    return EventAt(trace, event).purpose == purpose;
  };
}

EventTest IsCollective(int32_t collective) {
  return [collective](const Trace& trace, int64_t event) {
    return EventAt(trace, event).collective == collective;
  };
}

EventTest Phase(int32_t phase) {
  return
      [phase](const Trace& trace, int64_t event) { return EventAt(trace, event).phase == phase; };
}

EventTest Hook(int32_t hook) { return Kernel(hook); }

EventTest Result(int32_t result) {
  return [result](const Trace& trace, int64_t event) {
    return EventAt(trace, event).result == result;
  };
}

EventTest OnGroup(const std::string& name) {
  return [name](const Trace& trace, int64_t event) {
    const int32_t group = EventAt(trace, event).group;
    return group >= 0 && At(trace.groups, group).name == name;
  };
}

EventTest Touches(uint8_t access, int32_t purpose) {
  return [access, purpose](const Trace& trace, int64_t event) {
    std::map<int32_t, int32_t> purposes;
    for (const Event& e : trace.events) {
      if (e.kind == EventKind::kAlloc) purposes[e.alloc] = e.purpose;
    }
    const Event& e = EventAt(trace, event);
    if (e.kind == EventKind::kFree) return purposes[e.alloc] == purpose;
    for (uint32_t i = e.ranges.begin; i < e.ranges.end; ++i) {
      const Range& range = trace.ranges[i];
      if ((range.access & access) == access && purposes[range.alloc] == purpose) return true;
    }
    return false;
  };
}

EventTest AllOf(std::vector<EventTest> tests) {
  return [tests = std::move(tests)](const Trace& trace, int64_t event) {
    for (const EventTest& test : tests) {
      if (!test(trace, event)) return false;
    }
    return true;
  };
}

}  // namespace shardproof
