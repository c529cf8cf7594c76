// mini_layer_wise.h: how does a test get the traces of a layer-wise engine that keeps the rules,
// and of one with one fault?
//
// Writes what a small engine would leave for a case, without running anything: all layouts,
// transports and buffers, streams for compute, gathers and reductions, buckets of bucket_size
// elements. Published values come from MiniValue().
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "conformance/checks/base/check.h"
#include "conformance/checks/base/facts.h"
#include "conformance/checks/testing/written_run.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {

struct LayerWiseFaults {
  int32_t rank = -1;  // which rank departs; -1: all
  // owners
  bool publish_all = false, publish_none = false, publish_half = false;
  bool owner_moves = false, step_all = false, step_twice = false;
  bool skip_update = false;      // in the second train_step this rank steps and publishes nothing
  bool silent_update = false;    // in the second train_step nobody publishes, but all step
  bool other_optimizer = false;  // sgd and adamw are exchanged
  bool leave_out = false;        // in the second train_step nobody steps the last parameter
  bool value_stays = false;      // and its value stays: by SGD, without decay, no fault
  // buckets and collectives
  bool frozen_in_bucket = false, mix_kinds = false, cross_edge = false, one_by_one = false;
  bool reduce_over_experts = false;  // dense gradients over expt_dp
  bool other_reduction = false;      // all_reduce and reduce_scatter are exchanged
  bool gather_empty = false, gather_alone = false, reduce_alone = false;
  bool bf16_wire = false, loose_counts = false;
  bool no_cut = false;                                  // one bucket whatever bucket_size says
  bool wide_padding = false;                            // two alignments more than a shard needs
  std::optional<Choice<LayerWiseTransport>> transport;  // instead of the case's
  std::optional<Choice<LayerWiseBuffer>> buffer;
  bool out_of_place = false;
  // gathers
  bool before_install = false;  // of what the model weights were before the step
  bool other_root = false;      // each broadcast is sent by the rank after the owner
  bool no_gather = false;       // of the last bucket
  bool each_microbatch = false, eval_too = false, at_create = false, other_time = false;
  bool late_need = false;  // a module reads before it asks for its bucket
  bool copy_own = false, no_copy = false, no_install = false;
  bool late_install = false;  // the last bucket of a chain comes in backward
  bool no_zero = false, zero_next = false;
  bool no_wait = false, keep_buffer = false, free_early = false;
  bool all_ahead = false,
       two_ahead = false;     // of the bucket that is installed: all that follow, two
  bool wait_at_once = false;  // the next bucket's gather is waited for where it is launched
  bool gather_beside_reduction = false;
  // No faults, but other ways.
  bool coarse = false;           // shards of multiples of 4096 elements, pieces of 64
  bool install_unnamed = false;  // after load weights are installed before they are published
  bool root_in_place =
      false;  // parameters are broadcast one by one, at their owner from and to its weights
  bool root_sends_alone = false;  // the same, and the owner receives nothing
  bool root_sends_main = false;   // the same, of its main weights
  bool into_weights = false;      // the same, and the others receive into theirs
  bool pieces_apart = false;      // each owner's piece arrives in a block of its own
  bool sync_eval = false;         // an evaluation gathers everything before it starts
  bool clear_unnamed = false;     // gradient storage is cleared by a kernel of the engine's own
};

using LayerWiseRun = WrittenRun;

Case LayerWiseCase(int32_t world, const std::function<void(InstanceSpec&)>& edit = {});
LayerWiseRun RunLayerWise(Case c, const LayerWiseFaults& faults = {});
Trace WriteLayerWiseTrace(const Case& c, const InstanceFacts& facts, int32_t rank,
                          const LayerWiseFaults& faults);

}  // namespace shardproof
