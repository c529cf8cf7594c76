// pipeline_links.h: how do values reach the next stage of a pipeline, and their gradients come
// back?
//
// Ranks form a ring: the last one passes a chunk's output on to the first one's next chunk. Each of
// the four ways (to and from either neighbour) has a stream and, of two ranks, a communicator of
// its own: what is sent in one direction never waits behind another. Both ends of a link see the
// same sequence, because every rank takes microbatches and chunks in one order
// (interleaved_order.h).
#pragma once
#include "reference/schedule/microbatch_plan.h"

namespace reference {

class PipelineLinks {
 public:
  // Collective over "pp".
  explicit PipelineLinks(Context& context);

  // Before the side's first part: the values (forward) or gradients (backward) that cross into this
  // stage arrive, and compute waits for them. Nothing in the first (or last) stage.
  void Receive(MicrobatchPlan& plan, Side side);
  // After its last part: those that leave it are sent, and freed behind that.
  void Send(MicrobatchPlan& plan, Side side);
  void Destroy();

 private:
  struct Way {
    spf_group group = nullptr;
    spf_stream stream = nullptr;
    int32_t peer = 0;  // rank in the group
  };
  Way& To(Side side) { return side == Side::kForward ? forward_out_ : backward_out_; }
  Way& From(Side side) { return side == Side::kForward ? forward_in_ : backward_in_; }
  void Transfer(const Way& way, spf_collective_kind kind, const ValueRef& value, spf_addr address,
                const MicrobatchPlan& plan);

  Context& c_;
  Way forward_out_, forward_in_, backward_out_, backward_in_;
};

}  // namespace reference
