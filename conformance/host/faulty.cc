#include "conformance/host/faulty.h"

#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

namespace shardproof {
namespace {

// After the last the first.
spf_hook OtherHook(spf_hook hook) {
  return hook == SPF_HOOK_OPTIMIZER_STEP ? SPF_HOOK_FORWARD
                                         : static_cast<spf_hook>(static_cast<int>(hook) + 1);
}

bool ReadsAs(std::string_view text, double* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// Whether an engine takes both for one: 01 is 1, and 1e-3 is 0.001.
bool SameValue(std::string_view a, std::string_view b) {
  double x = 0, y = 0;
  return a == b || (ReadsAs(a, &x) && ReadsAs(b, &y) && x == y);
}

}  // namespace

FaultyHost::FaultyHost(spf_host* inner, Fault fault, std::atomic<bool>* struck)
    : inner_(inner), fault_(std::move(fault)), struck_(struck) {
  static_cast<spf_host&>(table_) = *inner;
  table_.owner = this;
  FillFacts();
  FillGroups();
  FillStreams();
  FillEvents();
  FillMemory();
  FillWork();
}

void FaultyHost::Strikes() {
  fired_ = true;
  if (struck_ != nullptr) struck_->store(true);
}

bool FaultyHost::Chosen(std::string_view name) {
  const auto at = counts_.try_emplace(std::string(name), 0).first;
  const bool chosen = at->second++ == fault_.nth && name == fault_.call;
  if (chosen) Strikes();
  return chosen;
}

// A held call happens once enough others have.
spf_status FaultyHost::After(spf_status status) {
  if (held_ && --hold_ <= 0) {
    const Call held = std::exchange(held_, nullptr);
    late_ = true;
    const spf_status late = held();
    late_ = false;
    if (status == SPF_OK) return late;
  }
  return status;
}

spf_status FaultyHost::Pass(std::string_view name, Call call, Call corrupted) {
  if (!Chosen(name)) return After(call());
  switch (fault_.action) {
    case Fault::Action::kDrop:
      return SPF_OK;
    case Fault::Action::kDuplicate: {
      const spf_status first = call();
      return first == SPF_OK ? call() : first;
    }
    case Fault::Action::kCorrupt:
      return corrupted ? corrupted() : call();
    case Fault::Action::kIgnore:  // of no call that does something
      return call();
    case Fault::Action::kDelay:
    case Fault::Action::kReorder:
      hold_ = fault_.action == Fault::Action::kReorder ? 1 : fault_.amount;
      held_ = std::move(call);
      return SPF_OK;
  }
  return SPF_FAILED;
}

// An ignored knob has been read all the same. If what it says is what is used anyway, nothing goes
// wrong.
const char* FaultyHost::Knob(const char* name) {
  const char* told = inner_->knob(inner_, name);
  if (fault_.action != Fault::Action::kIgnore || name == nullptr || fault_.knob != name)
    return told;
  const char* used = fault_.value.empty() ? nullptr : fault_.value.c_str();
  const bool same = told == nullptr || used == nullptr ? told == used : SameValue(used, told);
  if (!same) Strikes();
  return used;
}

// Facts have no effect: they are forwarded as they are, but for a knob that is ignored.
void FaultyHost::FillFacts() {
  table_.last_error = [](spf_host* h) { return Of(h).inner_->last_error(Of(h).inner_); };
  table_.explain = [](spf_host* h, const char* text) { Of(h).inner_->explain(Of(h).inner_, text); };
  table_.knob = [](spf_host* h, const char* name) { return Of(h).Knob(name); };
  table_.model = [](spf_host* h) { return Of(h).inner_->model(Of(h).inner_); };
  table_.program = [](spf_host* h, int64_t step, int32_t microbatch) {
    return Of(h).inner_->program(Of(h).inner_, step, microbatch);
  };
  table_.group = [](spf_host* h, const char* name) {
    return Of(h).inner_->group(Of(h).inner_, name);
  };
  table_.group_info = [](spf_host* h, spf_group g, int32_t* rank, int32_t* n,
                         const int32_t** ranks) {
    return Of(h).inner_->group_info(Of(h).inner_, g, rank, n, ranks);
  };
}

void FaultyHost::FillGroups() {
  // corrupt: the members in reverse order
  table_.group_create = [](spf_host* h, spf_group parent, const char* name, int32_t n,
                           const int32_t* ranks, spf_group* out) {
    FaultyHost& self = Of(h);
    spf_host* in = self.inner_;
    const std::vector<int32_t> list(ranks, ranks + n);
    const spf_status status = self.Pass(
        "group_create",
        [&self, in, parent, label = std::string(name), list, out] {
          spf_group lost = nullptr;
          return in->group_create(in, parent, label.c_str(), static_cast<int32_t>(list.size()),
                                  list.data(), self.late_ ? &lost : out);
        },
        [in, parent, label = std::string(name), list, out] {
          const std::vector<int32_t> turned(list.rbegin(), list.rend());
          return in->group_create(in, parent, label.c_str(), static_cast<int32_t>(turned.size()),
                                  turned.data(), out);
        });
    if (status == SPF_OK && out != nullptr) self.groups_.Add(*out);
    return status;
  };
  // corrupt, of what names one group, stream, event or block: another of them
  table_.group_destroy = [](spf_host* h, spf_group g) {
    spf_host* in = Of(h).inner_;
    FaultyHost& self = Of(h);
    const spf_group other = self.groups_.Other(g);
    self.groups_.Remove(g);
    return self.Pass(
        "group_destroy", [in, g] { return in->group_destroy(in, g); },
        [in, other] { return in->group_destroy(in, other); });
  };
  table_.group_register = [](spf_host* h, spf_group g, spf_addr block) {
    spf_host* in = Of(h).inner_;
    const spf_addr other = Of(h).blocks_.Other(block);
    return Of(h).Pass(
        "group_register", [in, g, block] { return in->group_register(in, g, block); },
        [in, g, other] { return in->group_register(in, g, other); });
  };
  table_.group_deregister = [](spf_host* h, spf_group g, spf_addr block) {
    spf_host* in = Of(h).inner_;
    const spf_addr other = Of(h).blocks_.Other(block);
    return Of(h).Pass(
        "group_deregister", [in, g, block] { return in->group_deregister(in, g, block); },
        [in, g, other] { return in->group_deregister(in, g, other); });
  };
}

void FaultyHost::FillStreams() {
  table_.stream_create = [](spf_host* h, const char* name, int32_t priority, spf_stream* out) {
    const spf_status status = Of(h).inner_->stream_create(Of(h).inner_, name, priority, out);
    if (status == SPF_OK) Of(h).streams_.Add(*out);
    return status;
  };
  table_.stream_destroy = [](spf_host* h, spf_stream s) {
    spf_host* in = Of(h).inner_;
    FaultyHost& self = Of(h);
    const spf_stream other = self.streams_.Other(s);
    self.streams_.Remove(s);
    return self.Pass(
        "stream_destroy", [in, s] { return in->stream_destroy(in, s); },
        [in, other] { return in->stream_destroy(in, other); });
  };
  table_.stream_sync = [](spf_host* h, spf_stream s) {
    spf_host* in = Of(h).inner_;
    const spf_stream other = Of(h).streams_.Other(s);
    return Of(h).Pass(
        "stream_sync", [in, s] { return in->stream_sync(in, s); },
        [in, other] { return in->stream_sync(in, other); });
  };
}

void FaultyHost::FillEvents() {
  table_.event_create = [](spf_host* h, spf_event* out) {
    const spf_status status = Of(h).inner_->event_create(Of(h).inner_, out);
    if (status == SPF_OK) Of(h).events_.Add(*out);
    return status;
  };
  table_.event_destroy = [](spf_host* h, spf_event e) {
    spf_host* in = Of(h).inner_;
    FaultyHost& self = Of(h);
    const spf_event other = self.events_.Other(e);
    self.events_.Remove(e);
    return self.Pass(
        "event_destroy", [in, e] { return in->event_destroy(in, e); },
        [in, other] { return in->event_destroy(in, other); });
  };
  table_.event_record = [](spf_host* h, spf_event e, spf_stream s) {
    spf_host* in = Of(h).inner_;
    const spf_stream other = Of(h).streams_.Other(s);
    return Of(h).Pass(
        "event_record", [in, e, s] { return in->event_record(in, e, s); },
        [in, e, other] { return in->event_record(in, e, other); });
  };
  table_.event_wait = [](spf_host* h, spf_event e, spf_stream s) {
    spf_host* in = Of(h).inner_;
    const spf_event other = Of(h).events_.Other(e);
    return Of(h).Pass(
        "event_wait", [in, e, s] { return in->event_wait(in, e, s); },
        [in, other, s] { return in->event_wait(in, other, s); });
  };
  table_.event_sync = [](spf_host* h, spf_event e) {
    spf_host* in = Of(h).inner_;
    const spf_event other = Of(h).events_.Other(e);
    return Of(h).Pass(
        "event_sync", [in, e] { return in->event_sync(in, e); },
        [in, other] { return in->event_sync(in, other); });
  };
  // corrupt: the next hook
  table_.mark = [](spf_host* h, spf_hook hook, int32_t module, int32_t microbatch) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "mark", [=] { return in->mark(in, hook, module, microbatch); },
        [=] { return in->mark(in, OtherHook(hook), module, microbatch); });
  };
}

void FaultyHost::FillMemory() {
  // corrupt: half the bytes
  table_.mem_alloc = [](spf_host* h, spf_stream s, uint64_t bytes, spf_place place, spf_label label,
                        spf_addr* out) {
    spf_host* in = Of(h).inner_;
    if (out != nullptr) *out = 0;
    FaultyHost* self = &Of(h);
    const auto alloc = [=] {
      spf_addr lost = 0;
      return in->mem_alloc(in, s, bytes, place, label, self->late_ ? &lost : out);
    };
    const spf_status status = self->Pass("mem_alloc", alloc, [=] {
      return in->mem_alloc(in, s, (bytes + 1) / 2, place, label, out);
    });
    if (status == SPF_OK && out != nullptr && *out != 0) self->blocks_.Add(*out);
    return status;
  };
  table_.mem_free = [](spf_host* h, spf_stream s, spf_addr a) {
    spf_host* in = Of(h).inner_;
    FaultyHost& self = Of(h);
    const spf_addr other = self.blocks_.Other(a);
    self.blocks_.Remove(a);
    return self.Pass(
        "mem_free", [=] { return in->mem_free(in, s, a); },
        [=] { return in->mem_free(in, s, other); });
  };
  // corrupt: half the bytes
  table_.copy = [](spf_host* h, spf_stream s, spf_addr to, spf_addr from, uint64_t bytes) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "copy", [=] { return in->copy(in, s, to, from, bytes); },
        [=] { return in->copy(in, s, to, from, (bytes + 1) / 2); });
  };
  table_.host_access = [](spf_host* h, spf_addr a, uint64_t bytes, spf_access access, void** out) {
    return Of(h).inner_->host_access(Of(h).inner_, a, bytes, access, out);
  };
  // corrupt: one element fewer
  table_.init = [](spf_host* h, spf_stream s, int32_t p, int64_t offset, int64_t count, spf_dtype t,
                   spf_addr to) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "init", [=] { return in->init(in, s, p, offset, count, t, to); },
        [=] { return count > 1 ? in->init(in, s, p, offset, count - 1, t, to) : SPF_OK; });
  };
  table_.publish = [](spf_host* h, spf_stream s, spf_result what, int32_t id, int64_t offset,
                      int64_t count, spf_dtype t, spf_addr from) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "publish", [=] { return in->publish(in, s, what, id, offset, count, t, from); },
        [=] {
          return count > 1 ? in->publish(in, s, what, id, offset, count - 1, t, from) : SPF_OK;
        });
  };
}

}  // namespace shardproof
