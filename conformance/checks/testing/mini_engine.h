// mini_engine.h: how does a test get the traces of a well-behaved engine, and of one with a single
// fault?
//
// Writes the traces that a plain FSDP engine would leave for a case, one stream a rank, every
// parameter a bucket of its own, without running anything: published values and digests come from
// Value(), and so does the oracle. A test asks for the good traces, or for one departure.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/checks/base/check.h"
#include "conformance/checks/base/facts.h"
#include "conformance/checks/testing/found_in.h"
#include "conformance/checks/testing/written_run.h"
#include "conformance/oracle/oracle.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {

// A flag that is all-reduced in each step, in a block of the step's own or, kInPlace, of the
// engine's.
enum class MiniFlag : uint8_t { kNone, kReadOnHost, kIgnored, kCopiedAndIgnored, kInPlace };

// How what meets over tp and cp travels, where not by collectives.
enum class MiniMessages : uint8_t { kNone, kRing, kBroadcasts };

struct MiniFaults {
  int32_t rank = -1;                // which rank departs; -1: all
  bool no_release_forward = false;  // units stay gathered after forward
  bool no_release_at_end = false;   // non-unit parameters and the last unit are never freed
  bool release_early = false;       // a unit is released before its last node computes
  int32_t prefetch = 0;             // units gathered ahead in forward
  int32_t prefetch_call = -1;       // only in this entry call; -1: in all
  bool gather_reversed = false;     // all units gathered up front, last first
  bool recompute_prefetch =
      false;  // in backward the next forward unit is gathered too, and released unread
  bool skip_reduce_last = false;    // gradients of the last microbatch are not reduced
  bool reduce_before_last = false;  // reduced before the last node of the unit has added
  bool add_reduced_twice = false;   // the reduced shard is added twice
  bool eval_reduces = false;        // an evaluation runs backward and reduces
  bool no_zero_grad = false;        // accumulators live on from step to step
  bool skip_outer = false;          // no outer reduction
  bool outer_each_microbatch = false;
  bool no_install = false;  // main weights are not copied to the shards
  bool reduce_on_twin = false, gather_on_reducer = false;
  bool bf16_wire = false;  // reductions claim to travel in bf16
  bool marks = true;
  bool root_pre_backward_twice = false;
  bool no_nan_guard = false;
  bool leak = false;           // one block is left behind by destroy
  bool drift = false;          // one block more each step
  bool double_create = false;  // a group is created twice
  bool reduce_frozen = false;  // zeros are reduced for frozen parameters too
  bool skip_unused = false;    // a unit that a backward leaves out is not reduced either
  bool padded_shards = false;  // no fault: a bucket's first shard holds all of it, others padding
  bool in_pieces = false;    // no fault: in forward a unit's last parameter is gathered at its node
  bool late_rest = false;    // of a unit only the first parameter is reduced in its backward
  bool late_reduce = false;  // units are reduced when backward is over
  bool late_free = false;    // and what they sent is freed then
  bool all_reduce = false;   // instead of reduce-scatters
  bool pinned_drift = false;       // one pinned block more each train step
  bool pinned_eval_drift = false;  // one in each evaluation
  bool host_waits = false;         // for each operation
  MiniFlag flag = MiniFlag::kNone;
  // With backward_param_copies: there is one; backward's is not written after a step; it
  // never is.
  bool one_copy = false, stale_copy = false, blank_copy = false;
  bool eval_copy = false;  // no fault: evaluation reads backward's
  bool staged = false;     // no fault: what a gather sends is copied to a buffer first
  int32_t buffers = 2;     // with fsdp_double_buffer, of units that are alike, in turn
  // How often values, and gradients of values, are summed over tp where the tables say so, how
  // often parts of the sequence are gathered, and gradients of parts summed; over which group
  // values are, and whether they are averaged; gradients of parameters are summed over it, too;
  // gradients are published one too large.
  int32_t tp_sums_forward = 1, tp_sums_backward = 1, tp_gathers = 1, tp_parts = 1;
  bool tp_stale = false;           // in the first step alone values meet
  bool tp_parts_unlooked = false;  // gradients of parts are summed before they are examined
  // No fault: all_reduce and a copy in place of reduce-scatters; gradients of parts are summed
  // before their data-parallel reductions.
  bool tp_whole_sums = false, tp_parts_first = false;
  // No fault: what meets goes from rank to rank, or each broadcasts its own, and is put together by
  // the ranks themselves; what one of the others sent counts twice, for gathers in place of its
  // own.
  // With broadcasts, sums begin with zeros.
  MiniMessages messages = MiniMessages::kNone;
  bool tp_gathers_uneven = false;  // no fault: all-gathers with counts
  bool messages_again = false;
  bool all_reduce_behind = false;  // of sums that messages made
  bool passed_on = false;          // what met is sent round all ranks: each has that of another
  const char* tp_group = "tp";
  const char* cp_group = "cp";
  bool tp_average = false, reduce_over_tp = false, grads_off_by_one = false;
  bool swap_halves = false;  // the shards of an odd microbatch are gathered into swapped halves
};

// Traces, outcomes and oracle of one run; the case and oracle live as long as this.
struct MiniRun : WrittenRun {
  std::vector<std::unique_ptr<OracleRun>> oracles;
};

MiniRun RunMini(Case c, const MiniFaults& faults = {});
// A small case: world ranks, strategy optim_grads_params, two layers, as the test likes.
Case MiniCase(int32_t world, const std::function<void(InstanceSpec&)>& edit = {});

// The value of an element of a parameter after an entry call.
float MiniValue(int32_t call, int32_t key, int64_t element);
float MiniGrad(int32_t call, int32_t key, int64_t element);

}  // namespace shardproof
