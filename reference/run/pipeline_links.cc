#include "reference/run/pipeline_links.h"

namespace reference {

PipelineLinks::PipelineLinks(Context& context) : c_(context), stream_(c_.host.Stream("pipeline")) {}

void PipelineLinks::Transfer(const std::vector<ValueMessage>& messages,
                             Microbatches& microbatches) {
  std::vector<spf_collective> operations;
  for (const auto& [message, values] : messages) {
    Microbatch& microbatch = microbatches.At(message.pass);
    if (message.send) c_.host.Wait(stream_, microbatch.chain);
    for (const ValueRef& value : values) {
      const spf_value& shape = c_.host.model().values[value.value];
      const spf_addr address = message.send ? microbatch.values.AddressOf(value)
                                            : microbatch.values.Allocate(value, stream_);
      spf_collective& op = operations.emplace_back(
          spf::Host::Collective(message.send ? SPF_SEND : SPF_RECV, c_.groups.pp.handle, stream_,
                                shape.dtype, message.send ? address : 0, message.send ? 0 : address,
                                Count(shape.max_rows * shape.row_elems),
                                spf::For(SPF_FOR_PIPELINE, -1, message.pass.microbatch)));
      op.peer = message.peer;
    }
  }
  c_.host.Communicate(operations);
  for (const auto& [message, values] : messages) {
    if (message.send) microbatches.At(message.pass).values.Free(values, stream_);
  }
}

void PipelineLinks::Destroy() {
  c_.host.Sync(stream_);
  spf::Check(c_.host.DestroyStream(stream_));
}

}  // namespace reference
