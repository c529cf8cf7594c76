// one_f_one_b.h: how does FSDP train two microbatches at the same time?
//
// One microbatch goes forward while another goes backward; issue_order.h says in which order the
// host issues their schedule nodes. No layer runs as a whole, so nothing happens "before the layer"
// or "after the layer". Operations and nodes drive the life cycle of units instead:
//
//   gather              before the first operation that reads a parameter of the bucket group; all
//                       of a unit before its first operation, where there is no overlap or
//                       fine_grained_param_gather is 0. What the pass needs next is gathered ahead
//   release, forward    after the layer's last forward node: combine, or mlp in a dense layer.
//                       At once, but only marked while the unit's backward is still to come in this
//                       step: the other microbatch is about to need it (gathering.h)
//   release, backward   after the layer's last backward work: pre_dispatch backward, or its weight
//                       gradients where they are delayed. At once, unless a unit that was gathered
//                       whole is in the forward of the other microbatch, which then releases it
//   reshard 0           in a pipeline (reshard_after_forward = 0): a unit stays while a microbatch
//                       is between its forward and its backward
//   other units         an embedding, say: after the last node of each pass with an operation of it
//   reduction           after the node with the last gradient of a bucket group, delayed ones
//                       included
//   root pre-backward   once per step with a backward side: every unit's backward is to come, and
//                       what it needs first is gathered ahead
//   root post-backward  once per such step: what got no gradient contributes zeros (in a pipeline
//                       after the first chunk, the last to go backward). What is being reduced goes
//                       on beside the next microbatch (reducing.h)
//
// Whole parameters that are dealt to ranks know no units: their chain of gathers (gather_chain.h)
// is published before the first backward, and buckets are reduced in their order (layer_wise.h).
//
// All readers of parameters and their release are on compute: plan_operations.cc refuses a reader
// elsewhere.
// The streams and the event that chains a microbatch's nodes are in reference/README.md.
#pragma once
#include "reference/plan/writer.h"

namespace reference {

// Without a pipeline, and interleaved over the chunks of one.
void PlanOneFOneBTraining(PlanWriter& write);
// Forward only, in a pipeline.
void PlanPipelineEval(PlanWriter& write);

}  // namespace reference
