#include "conformance/host/faulty.h"

#include <memory>
#include <utility>
#include <vector>

namespace shardproof {

FaultyHost::FaultyHost(spf_host* inner, Fault fault) : inner_(inner), fault_(std::move(fault)) {
  static_cast<spf_host&>(table_) = *inner;
  table_.owner = this;
  FillFacts();
  FillGroups();
  FillStreams();
  FillMemory();
  FillWork();
}

bool FaultyHost::Chosen(std::string_view name) {
  const auto at = counts_.try_emplace(std::string(name), 0).first;
  const bool chosen = at->second++ == fault_.nth && name == fault_.call;
  fired_ = fired_ || chosen;
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

// An ignored knob has been read all the same.
const char* FaultyHost::Knob(const char* name) {
  const char* told = inner_->knob(inner_, name);
  if (fault_.action != Fault::Action::kIgnore || name == nullptr || fault_.knob != name)
    return told;
  fired_ = true;
  return fault_.value.empty() ? nullptr : fault_.value.c_str();
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
    return self.Pass(
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
  };
  table_.group_destroy = [](spf_host* h, spf_group g) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "group_destroy", [in, g] { return in->group_destroy(in, g); }, nullptr);
  };
  table_.group_register = [](spf_host* h, spf_group g, spf_addr block) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "group_register", [in, g, block] { return in->group_register(in, g, block); }, nullptr);
  };
  table_.group_deregister = [](spf_host* h, spf_group g, spf_addr block) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "group_deregister", [in, g, block] { return in->group_deregister(in, g, block); }, nullptr);
  };
}

void FaultyHost::FillStreams() {
  table_.stream_create = [](spf_host* h, const char* name, int32_t priority, spf_stream* out) {
    return Of(h).inner_->stream_create(Of(h).inner_, name, priority, out);
  };
  table_.stream_destroy = [](spf_host* h, spf_stream s) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "stream_destroy", [in, s] { return in->stream_destroy(in, s); }, nullptr);
  };
  table_.stream_sync = [](spf_host* h, spf_stream s) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "stream_sync", [in, s] { return in->stream_sync(in, s); }, nullptr);
  };
  table_.event_create = [](spf_host* h, spf_event* out) {
    return Of(h).inner_->event_create(Of(h).inner_, out);
  };
  table_.event_destroy = [](spf_host* h, spf_event e) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "event_destroy", [in, e] { return in->event_destroy(in, e); }, nullptr);
  };
  table_.event_record = [](spf_host* h, spf_event e, spf_stream s) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "event_record", [in, e, s] { return in->event_record(in, e, s); }, nullptr);
  };
  table_.event_wait = [](spf_host* h, spf_event e, spf_stream s) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "event_wait", [in, e, s] { return in->event_wait(in, e, s); }, nullptr);
  };
  table_.event_sync = [](spf_host* h, spf_event e) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "event_sync", [in, e] { return in->event_sync(in, e); }, nullptr);
  };
  table_.mark = [](spf_host* h, spf_hook hook, int32_t module, int32_t microbatch) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "mark", [=] { return in->mark(in, hook, module, microbatch); }, nullptr);
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
    return self->Pass("mem_alloc", alloc,
                      [=] { return in->mem_alloc(in, s, (bytes + 1) / 2, place, label, out); });
  };
  table_.mem_free = [](spf_host* h, spf_stream s, spf_addr a) {
    spf_host* in = Of(h).inner_;
    return Of(h).Pass(
        "mem_free", [=] { return in->mem_free(in, s, a); }, nullptr);
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

void FaultyHost::FillWork() {
  table_.communicate = [](spf_host* h, int32_t n, const spf_collective* ops) {
    return Of(h).Communicate(n, ops);
  };
  table_.compute = [](spf_host* h, spf_stream s, const spf_compute* c) {
    return Of(h).Compute(s, c);
  };
  table_.launch = [](spf_host* h, spf_stream s, const spf_launch* l) { return Of(h).Launch(s, l); };
}

// corrupt=0: the first operation has one element fewer; =1: the first element received is
// overwritten afterwards; =2: SUM becomes AVG and the reverse; =3: the root or peer is the next
// rank.
spf_status FaultyHost::Communicate(int32_t n, const spf_collective* ops) {
  spf_host* in = inner_;
  struct Copy {
    spf_collective op;
    std::vector<uint64_t> send, recv;
  };
  auto copies = std::make_shared<std::vector<Copy>>();
  for (int32_t i = 0; i < n; ++i) {
    int32_t members = 0;
    Copy& copy = copies->emplace_back();
    copy.op = ops[i];
    if (ops[i].group != nullptr) in->group_info(in, ops[i].group, nullptr, &members, nullptr);
    if (ops[i].send_counts != nullptr)
      copy.send.assign(ops[i].send_counts, ops[i].send_counts + members);
    if (ops[i].recv_counts != nullptr)
      copy.recv.assign(ops[i].recv_counts, ops[i].recv_counts + members);
  }
  const auto issue = [in, copies] {
    std::vector<spf_collective> list;
    for (const Copy& copy : *copies) {
      spf_collective op = copy.op;
      op.send_counts = copy.send.empty() ? nullptr : copy.send.data();
      op.recv_counts = copy.recv.empty() ? nullptr : copy.recv.data();
      list.push_back(op);
    }
    return in->communicate(in, static_cast<int32_t>(list.size()), list.data());
  };
  return Pass("communicate", issue, [in, copies, issue, amount = fault_.amount] {
    spf_collective& op = copies->front().op;
    if (amount == 0 && op.count > 0) --op.count;
    if (amount == 2) op.reduction = op.reduction == SPF_SUM ? SPF_AVG : SPF_SUM;
    if (amount == 3) {
      int32_t members = 1;
      in->group_info(in, op.group, nullptr, &members, nullptr);
      op.peer = (op.peer + 1) % members;
    }
    const spf_status status = issue();
    if (status != SPF_OK || amount != 1) return status;
    spf_span span = {op.recv, 1, op.dtype, SPF_WRITE};
    const double value = 3;
    spf_launch fill{};
    fill.size = sizeof fill;
    fill.kernel = SPF_K_FILL;
    fill.n_spans = fill.n_scalars = 1;
    fill.spans = &span;
    fill.scalars = &value;
    return in->launch(in, op.stream, &fill);
  });
}

// corrupt: INPUT nodes read the next sample; all others run with twice the scale.
spf_status FaultyHost::Compute(spf_stream stream, const spf_compute* compute) {
  spf_host* in = inner_;
  const spf_model* model = in->model(in);
  struct Copy {
    spf_compute args;
    std::vector<spf_addr> tables[4];
    std::vector<int64_t> rows;
  };
  auto copy = std::make_shared<Copy>();
  copy->args = *compute;
  const spf_addr* given[4] = {compute->param, compute->grad, compute->act, compute->dact};
  for (int i = 0; i < 4; ++i) {
    const int32_t n = i < 2 ? model->n_params : model->n_values;
    if (given[i] != nullptr) copy->tables[i].assign(given[i], given[i] + n);
  }
  if (compute->rows != nullptr) copy->rows.assign(compute->rows, compute->rows + model->n_values);
  const auto issue = [in, stream, copy] {
    spf_compute args = copy->args;
    const auto data = [&](int i) {
      return copy->tables[i].empty() ? nullptr : copy->tables[i].data();
    };
    args.param = data(0);
    args.grad = data(1);
    args.act = data(2);
    args.dact = data(3);
    args.rows = copy->rows.empty() ? nullptr : copy->rows.data();
    return in->compute(in, stream, &args);
  };
  return Pass("compute", issue, [copy, issue] {
    copy->args.sample = copy->args.sample > 0 ? copy->args.sample - 1 : copy->args.sample + 1;
    copy->args.scale = copy->args.scale == 0 ? 2 : 2 * copy->args.scale;
    return issue();
  });
}

// corrupt: the first scalar is doubled.
spf_status FaultyHost::Launch(spf_stream stream, const spf_launch* launch) {
  spf_host* in = inner_;
  struct Copy {
    spf_launch args;
    std::vector<spf_span> spans;
    std::vector<double> scalars;
    std::vector<std::byte> arg;
  };
  auto copy = std::make_shared<Copy>();
  copy->args = *launch;
  copy->spans.assign(launch->spans, launch->spans + launch->n_spans);
  copy->scalars.assign(launch->scalars, launch->scalars + launch->n_scalars);
  const auto* arg = static_cast<const std::byte*>(launch->arg);
  copy->arg.assign(arg, arg + launch->arg_bytes);
  const auto issue = [in, stream, copy] {
    spf_launch args = copy->args;
    args.spans = copy->spans.data();
    args.scalars = copy->scalars.data();
    args.arg = copy->arg.data();
    return in->launch(in, stream, &args);
  };
  return Pass("launch", issue, [copy, issue] {
    if (!copy->scalars.empty()) copy->scalars[0] *= 2;
    return issue();
  });
}

}  // namespace shardproof
