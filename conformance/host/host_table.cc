// The C table that an engine is given: each entry finds its host and goes through Enter.
#include "conformance/host/host_internal.h"

namespace shardproof {

namespace {
template <class T>
void Require(const T* pointer, const char* what) {
  RefuseUnless(pointer != nullptr, std::string(what) + " is NULL");
}
void RequireSize(uint32_t size, size_t least, const char* what) {
  RefuseUnless(size >= least, std::string(what) + ".size is " + std::to_string(size) +
                                  ": set it to sizeof (" + std::to_string(least) + ")");
}
}  // namespace

void Host::FillTable() {
  table_.owner = this;
  table_.size = sizeof(spf_host);
  table_.abi_major = SPF_ABI_MAJOR;
  table_.abi_minor = SPF_ABI_MINOR;
  FillFacts();
  FillGroups();
  FillStreams();
  FillMemory();
  FillWork();
  FillValues();
}

void Host::FillFacts() {
  table_.last_error = [](spf_host* h) {
    return static_cast<Table*>(h)->owner->last_error_.c_str();
  };
  table_.explain = [](spf_host* h, const char* text) {
    Host& host = *static_cast<Table*>(h)->owner;
    if (text == nullptr || host.CallerIsForeign("explain")) return;
    host.explanation_ = text;
    host.Add(EventKind::kExplain);
    host.recorder_.SetText(text);
  };
  table_.knob = [](spf_host* h, const char* name) -> const char* {
    Host& host = *static_cast<Table*>(h)->owner;
    if (name == nullptr || host.CallerIsForeign("knob")) return nullptr;
    const auto at = host.config_.knobs.find(name);
    const bool set = at != host.config_.knobs.end();
    if (host.read_knobs_.insert(name).second) {
      host.Add(EventKind::kKnob).flag = set;
      host.recorder_.SetText(name);
    }
    return set ? at->second.c_str() : nullptr;
  };
  table_.model = [](spf_host* h) {
    Host& host = *static_cast<Table*>(h)->owner;
    return &host.model_.Tables(host.config_.model_rank);
  };
  table_.program = [](spf_host* h, int64_t step, int32_t microbatch) -> const spf_program* {
    Host& host = *static_cast<Table*>(h)->owner;
    if (step < 0 || microbatch < 0 || microbatch >= host.config_.microbatches) return nullptr;
    return &host.ProgramOf(step, microbatch);
  };
  table_.group = [](spf_host* h, const char* name) -> spf_group {
    Host& host = *static_cast<Table*>(h)->owner;
    return name == nullptr || host.CallerIsForeign("group") ? nullptr : host.FindGroup(name);
  };
}

void Host::FillGroups() {
  table_.group_create = [](spf_host* h, spf_group parent, const char* name, int32_t n,
                           const int32_t* ranks, spf_group* out) {
    return Enter(h, "group_create", Family::kNormal, [&](Host& host) {
      Require(out, "out");
      Require(name, "name");
      return host.CreateGroup(parent, name, n, ranks, out);
    });
  };
  table_.group_info = [](spf_host* h, spf_group g, int32_t* rank, int32_t* n,
                         const int32_t** ranks) {
    return Enter(h, "group_info", Family::kNormal,
                 [&](Host& host) { return host.GroupInfoOf(g, rank, n, ranks); });
  };
  table_.group_destroy = [](spf_host* h, spf_group g) {
    return Enter(h, "group_destroy", Family::kCleanup,
                 [&](Host& host) { return host.DestroyGroup(g); });
  };
  table_.group_register = [](spf_host* h, spf_group g, spf_addr block) {
    return Enter(h, "group_register", Family::kNormal,
                 [&](Host& host) { return host.RegisterBlock(g, block); });
  };
  table_.group_deregister = [](spf_host* h, spf_group g, spf_addr block) {
    return Enter(h, "group_deregister", Family::kCleanup,
                 [&](Host& host) { return host.DeregisterBlock(g, block); });
  };
}

void Host::FillStreams() {
  table_.stream_create = [](spf_host* h, const char* name, int32_t priority, spf_stream* out) {
    return Enter(h, "stream_create", Family::kNormal, [&](Host& host) {
      Require(out, "out");
      return host.CreateStream(name, priority, out);
    });
  };
  table_.stream_destroy = [](spf_host* h, spf_stream s) {
    return Enter(h, "stream_destroy", Family::kCleanup,
                 [&](Host& host) { return host.DestroyStream(s); });
  };
  table_.stream_sync = [](spf_host* h, spf_stream s) {
    return Enter(h, "stream_sync", Family::kNormal, [&](Host& host) { return host.SyncStream(s); });
  };
  table_.event_create = [](spf_host* h, spf_event* out) {
    return Enter(h, "event_create", Family::kNormal, [&](Host& host) {
      Require(out, "out");
      return host.CreateEvent(out);
    });
  };
  table_.event_destroy = [](spf_host* h, spf_event e) {
    return Enter(h, "event_destroy", Family::kCleanup,
                 [&](Host& host) { return host.DestroyEvent(e); });
  };
  table_.event_record = [](spf_host* h, spf_event e, spf_stream s) {
    return Enter(h, "event_record", Family::kNormal,
                 [&](Host& host) { return host.RecordEvent(e, s); });
  };
  table_.event_wait = [](spf_host* h, spf_event e, spf_stream s) {
    return Enter(h, "event_wait", Family::kNormal,
                 [&](Host& host) { return host.WaitEvent(e, s); });
  };
  table_.event_sync = [](spf_host* h, spf_event e) {
    return Enter(h, "event_sync", Family::kNormal, [&](Host& host) { return host.SyncEvent(e); });
  };
}

void Host::FillMemory() {
  table_.mem_alloc = [](spf_host* h, spf_stream s, uint64_t bytes, spf_place place, spf_label label,
                        spf_addr* out) {
    return Enter(h, "mem_alloc", Family::kNormal, [&](Host& host) {
      Require(out, "out");
      return host.Alloc(s, bytes, place, label, out);
    });
  };
  table_.mem_free = [](spf_host* h, spf_stream s, spf_addr address) {
    return Enter(h, "mem_free", Family::kCleanup,
                 [&](Host& host) { return host.Free(s, address); });
  };
  table_.copy = [](spf_host* h, spf_stream s, spf_addr to, spf_addr from, uint64_t bytes) {
    return Enter(h, "copy", Family::kNormal,
                 [&](Host& host) { return host.Copy(s, to, from, bytes); });
  };
  table_.host_access = [](spf_host* h, spf_addr address, uint64_t bytes, spf_access access,
                          void** out) {
    return Enter(h, "host_access", Family::kNormal, [&](Host& host) {
      Require(out, "out");
      return host.HostAccess(address, bytes, access, out);
    });
  };
}

void Host::FillWork() {
  table_.communicate = [](spf_host* h, int32_t n, const spf_collective* ops) {
    const spf_status status = Enter(h, "communicate", Family::kNormal, [&](Host& host) {
      constexpr int32_t kMostOperations = 1 << 16;
      RefuseUnless(n > 0, "n is " + std::to_string(n) + ": pass at least one operation");
      RefuseUnless(n <= kMostOperations, "n " + std::to_string(n) + " cannot be meant");
      Require(ops, "ops");
      for (int32_t i = 0; i < n; ++i)
        RequireSize(ops[i].size, sizeof(spf_collective), "ops[].size: spf_collective");
      return host.Communicate(n, ops);
    });
    // Peers may already wait for this operation: the run ends on all ranks.
    Host& host = *static_cast<Table*>(h)->owner;
    if (status == SPF_REFUSED) host.fabric_.Fail(host.last_error_);
    return status;
  };
  table_.compute = [](spf_host* h, spf_stream s, const spf_compute* compute) {
    return Enter(h, "compute", Family::kNormal, [&](Host& host) {
      Require(compute, "compute");
      RequireSize(compute->size, sizeof(spf_compute), "spf_compute");
      return host.Compute(s, *compute);
    });
  };
  table_.launch = [](spf_host* h, spf_stream s, const spf_launch* launch) {
    return Enter(h, "launch", Family::kNormal, [&](Host& host) {
      Require(launch, "launch");
      RequireSize(launch->size, sizeof(spf_launch), "spf_launch");
      return host.Launch(s, *launch);
    });
  };
}

void Host::FillValues() {
  table_.init = [](spf_host* h, spf_stream s, int32_t param, int64_t offset, int64_t count,
                   spf_dtype dtype, spf_addr to) {
    return Enter(h, "init", Family::kNormal,
                 [&](Host& host) { return host.Init(s, param, offset, count, dtype, to); });
  };
  table_.publish = [](spf_host* h, spf_stream s, spf_result what, int32_t id, int64_t offset,
                      int64_t count, spf_dtype dtype, spf_addr from) {
    return Enter(h, "publish", Family::kNormal,
                 [&](Host& host) { return host.Publish(s, what, id, offset, count, dtype, from); });
  };
  table_.mark = [](spf_host* h, spf_hook hook, int32_t module, int32_t microbatch) {
    return Enter(h, "mark", Family::kNormal,
                 [&](Host& host) { return host.Mark(hook, module, microbatch); });
  };
}

}  // namespace shardproof
