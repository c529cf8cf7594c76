#include "reference/schedule/pipeline_links.h"

namespace reference {

PipelineLinks::PipelineLinks(Context& context) : c_(context), stream_(c_.host.Stream("pipeline")) {}

void PipelineLinks::Transfer(const std::vector<Message>& messages, const PlanOf& plan_of) {
  std::vector<spf_collective> operations;
  for (const Message& message : messages) {
    MicrobatchPlan& plan = plan_of(message.pass);
    if (message.send) plan.WaitOn(stream_);
    for (const ValueRef& value : plan.Crossing(message.backward, message.send)) {
      const spf_value& shape = c_.host.model().values[value.value];
      const spf_addr address = message.send ? plan.activations().AddressOf(value)
                                            : plan.activations().Allocate(value, stream_);
      spf_collective& op = operations.emplace_back(
          spf::Host::Collective(message.send ? SPF_SEND : SPF_RECV, c_.groups.pp.handle, stream_,
                                shape.dtype, message.send ? address : 0, message.send ? 0 : address,
                                static_cast<uint64_t>(shape.max_rows * shape.row_elems),
                                spf::For(SPF_FOR_PIPELINE, -1, plan.microbatch())));
      op.peer = message.peer;
    }
  }
  c_.host.Communicate(operations);
  for (const Message& message : messages) {
    if (!message.send) continue;
    MicrobatchPlan& plan = plan_of(message.pass);
    plan.activations().Free(plan.Crossing(message.backward, true), stream_);
  }
}

void PipelineLinks::Destroy() { spf::Check(c_.host.DestroyStream(stream_)); }

}  // namespace reference
