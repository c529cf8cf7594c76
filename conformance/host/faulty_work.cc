// faulty.h: the calls that carry out work, with copies of what their arguments point to.
#include <memory>
#include <utility>
#include <vector>

#include "conformance/host/faulty.h"

namespace shardproof {

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

// corrupt: INPUT nodes read the next sample; all others run with twice the scale. corrupt=2: in the
// name of another microbatch.
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
  return Pass("compute", issue, [copy, issue, amount = fault_.amount] {
    if (amount == 2) {
      copy->args.microbatch += copy->args.microbatch > 0 ? -1 : 1;
      return issue();
    }
    copy->args.sample = copy->args.sample > 0 ? copy->args.sample - 1 : copy->args.sample + 1;
    copy->args.scale = copy->args.scale == 0 ? 2 : 2 * copy->args.scale;
    return issue();
  });
}

// corrupt: the first scalar is doubled, or 1 if it was 0; without scalars the first span has one
// element fewer.
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
    if (copy->scalars.empty()) {
      if (!copy->spans.empty()) --copy->spans[0].count;
    } else {
      double& scalar = copy->scalars[0];
      scalar = scalar == 0 ? 1 : 2 * scalar;
    }
    return issue();
  });
}

}  // namespace shardproof
