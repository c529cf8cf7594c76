#include "reference/schedule/pipeline_links.h"

namespace reference {

PipelineLinks::PipelineLinks(Context& context) : c_(context) {
  const Communicator& pp = c_.groups.pp;
  const auto link = [&](const char* direction, int32_t from, int32_t to, Way& out, Way& in) {
    std::vector<int32_t> ranks;
    if (pp.rank == from || pp.rank == to) ranks = {from, to};
    const std::string name = "pp_" + std::string(direction) + "_" + std::to_string(from);
    const spf_group group = c_.host.CreateGroup(pp.handle, name.c_str(), ranks);
    if (pp.rank == from) out.group = group, out.peer = 1;
    if (pp.rank == to) in.group = group, in.peer = 0;
  };
  for (int32_t r = 0; r < pp.size(); ++r) {
    const int32_t next = (r + 1) % pp.size();
    link("forward", r, next, forward_out_, forward_in_);
    link("backward", next, r, backward_out_, backward_in_);
  }
  forward_out_.stream = c_.host.Stream("send_forward");
  forward_in_.stream = c_.host.Stream("recv_forward");
  backward_out_.stream = c_.host.Stream("send_backward");
  backward_in_.stream = c_.host.Stream("recv_backward");
}

void PipelineLinks::Receive(MicrobatchPlan& plan, Side side) {
  const Way& way = From(side);
  for (const ValueRef& value : plan.Crossing(side, /*inward=*/true)) {
    const spf_addr address = plan.activations().Allocate(value, way.stream);
    Transfer(way, SPF_RECV, value, address, plan);
    c_.host.After(c_.streams.compute, way.stream);
  }
}

void PipelineLinks::Send(MicrobatchPlan& plan, Side side) {
  const Way& way = To(side);
  for (const ValueRef& value : plan.Crossing(side, /*inward=*/false)) {
    plan.WaitOn(way.stream);
    const auto id = static_cast<size_t>(value.value);
    const Activations& values = plan.activations();
    Transfer(way, SPF_SEND, value, value.gradient ? values.dact()[id] : values.act()[id], plan);
    plan.activations().Free({value}, way.stream);
  }
}

void PipelineLinks::Transfer(const Way& way, spf_collective_kind kind, const ValueRef& value,
                             spf_addr address, const MicrobatchPlan& plan) {
  const spf_value& shape = c_.host.model().values[value.value];
  spf_collective op = spf::Host::Collective(
      kind, way.group, way.stream, shape.dtype, kind == SPF_SEND ? address : 0,
      kind == SPF_RECV ? address : 0, static_cast<uint64_t>(shape.max_rows * shape.row_elems),
      spf::For(SPF_FOR_PIPELINE, -1, plan.microbatch()));
  op.peer = way.peer;
  c_.host.Communicate({op});
}

void PipelineLinks::Destroy() {
  for (Way* way : {&forward_out_, &forward_in_, &backward_out_, &backward_in_})
    spf::Check(c_.host.raw()->stream_destroy(c_.host.raw(), way->stream));
  // Each link once, in the order in which they were made; with two ranks both are on this rank's
  // way out and on its way in.
  for (int32_t r = 0; r < c_.groups.pp.size(); ++r) {
    const int32_t me = c_.groups.pp.rank, next = (r + 1) % c_.groups.pp.size();
    if (r == me) c_.host.DestroyGroup(forward_out_.group);
    if (next == me) c_.host.DestroyGroup(forward_in_.group);
    if (next == me) c_.host.DestroyGroup(backward_out_.group);
    if (r == me) c_.host.DestroyGroup(backward_in_.group);
  }
}

}  // namespace reference
