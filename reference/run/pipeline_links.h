// pipeline_links.h: how do values reach the next stage of a pipeline, and their gradients come
// back?
//
// Between two steps, everything that leaves this rank and everything that the next step needs is
// one group operation on "pp" (plan/interleaved_order.h says what). It has a stream of its own, so
// it runs beside weight gradients that were left for later.
#pragma once
#include <vector>

#include "reference/core/context.h"
#include "reference/plan/step.h"
#include "reference/run/microbatch.h"

namespace reference {

class PipelineLinks {
 public:
  explicit PipelineLinks(Context& context);

  // Sends after the nodes that have been issued, and frees what was sent; what arrives is allocated
  // here.
  void Transfer(const std::vector<ValueMessage>& messages, Microbatches& microbatches);
  // Compute goes on when everything is here.
  void Arrive() { c_.host.After(c_.streams.compute, stream_); }
  // Waits for the last step's messages: nobody else does.
  void Destroy();

 private:
  Context& c_;
  spf_stream stream_ = nullptr;
};

}  // namespace reference
