// mini_schedule.h: how does a test get the traces of an engine that follows the schedule, and of
// one with one fault?
//
// Writes what a small 1F1B engine with FSDP would leave for a case, without running anything:
// streams for compute, all-to-alls, gathers and reductions, one event a microbatch, values freed
// after their last use. Routing is made up, the same on all ranks.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "conformance/checks/base/check.h"
#include "conformance/checks/base/facts.h"
#include "conformance/checks/testing/found_in.h"
#include "conformance/checks/testing/written_run.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {

struct ScheduleFaults {
  int32_t rank = -1;  // which rank departs; -1: all
  // order
  bool experts_before_dispatch_swapped =
      false;  // the backward of experts is issued after the other side's dispatch
  bool one_after_the_other = false;  // a combined step's sides do not mix
  bool shifted_pairs = false;        // backward begins one layer late
  bool skip_weights = false;    // delayed weight gradients of the experts of layer 0 are forgotten
  bool experts_on_a2a = false;  // experts compute on the stream of the all-to-alls
  bool weights_in_chain = false;  // weight gradients wait for and record the microbatch's event
  bool no_wait_before_dispatch = false;  // all-to-alls do not wait for compute
  bool serial = false;                   // compute waits for each all-to-all at once
  bool each_waits = false;               // each all-to-all waits for all compute so far
  bool second_waits = false;   // the second all-to-all of a dispatch waits for all compute so far
  bool weights_apart = false;  // as with the delay knob
  bool forward_first = false;  // no fault without marks: a combined step begins with its forward
  bool experts_first = false;  // backward of experts before the other side's attention
  // gathered parameters
  bool release_before_experts = false, release_on_mlp = false, release_before_weights = false;
  bool forget_release = false, eager_release = false, release_on_gather_stream = false;
  bool release_late = false;  // at the end of the next combined step
  bool chunks = false;  // no fault: a parameter comes in pieces, each rank broadcasts its shard
  bool whole_units = false;  // no fault where asked for: a unit comes with its first node
  bool regather_outside = false, stale = false, early_optimizer = false, gather_all = false;
  bool eval_keeps = false, keep_top_layer = false, gather_unread = false;
  // gradients
  bool skip_reduce = false, reduce_twice = false, reduce_before_weights = false,
       reduce_late = false;
  bool clear_unordered = false;  // memory of gradients is cleared on the reductions' stream
  bool skip_empty = false, free_gradient_early = false, root_twice = false,
       reduce_unordered = false;
  // activations
  bool keep_activations = false, free_at_end = false, leak = false;
  bool eval_leaks = false;
  bool free_on_compute = false;  // values go back on compute, also what all-to-alls read
  // all-to-alls
  bool unswapped = false, other_splits = false, lost_row = false, short_piece = false,
       probs_first = false;
  bool skip_empty_exchange = false;
  int pack = -1;            // no fault: rows are packed and unpacked by launches of this kernel
  bool pack_mixed = false;  // ... that also read what was packed before
  bool send_freed = false;  // what is sent has been freed
  // No fault: collectives are in flight one at a time; where that is asked for, all-to-alls are
  // beside others.
  bool in_turn = false, a2a_out_of_turn = false;
};

using ScheduleRun = WrittenRun;

Case ScheduleCase(int32_t world, int32_t ep, const std::function<void(InstanceSpec&)>& edit = {});
ScheduleRun RunSchedule(Case c, const ScheduleFaults& faults = {});
Trace WriteScheduleTrace(const Case& c, const InstanceFacts& facts, int32_t rank,
                         const ScheduleFaults& faults);

}  // namespace shardproof
