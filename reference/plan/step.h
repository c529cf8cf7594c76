// step.h: what is one step of a plan?
//
// A plan is the list of everything that one rank issues in a train step, in order. It is made
// before the step, from tables and knobs alone (sequential.h, one_f_one_b.h, layer_wise.h); the
// executor walks it (run/executor.h). Two things are left to the run because they depend on data:
// numbers of rows in exchanges, and whether a step with too large a norm changes anything.
#pragma once
#include <vector>

#include "reference/core/operation.h"
#include "reference/plan/interleaved_order.h"

namespace reference {

enum class Do {
  kMark,       // announces a hook, H0 to H12
  kZeroGrads,  // H12: clears what accumulates
  kUpdate,     // sum over tp, norm, clip, optimizer; leaves the step out if the norm is too large
  kInstall,    // H10: main weights become model weights

  // Parameters of a bucket group.
  kGather,   // launches the all-gather on the gather stream; allocates where it arrives
  kNeed,     // compute waits for it
  kRelease,  // frees where it arrived, behind what compute has been given. Layer-wise: copies the
             // values into the model weights before

  kReshard,  // after a unit's forward: keeps this rank's part for backward, and frees the rest

  // Gradients of a bucket group.
  kBegin,    // storage for this rank's gradient, zeroed
  kFold,     // adds it to the main gradient, where the two differ in dtype
  kReduce,   // hands it to the reduce stream
  kReduced,  // compute waits for the oldest reduction under way, and frees what it sent

  // One microbatch; in a pipeline its pass through one chunk.
  kOpen,         // its values begin to exist, and the event that chains its schedule nodes
  kRun,          // one operation; then frees the values that die there
  kChainWait,    // the stream waits for the microbatch's last node, on whatever stream
  kChainRecord,  // the microbatch's next node waits for this one
  kClose,
  kArrive,    // in a pipeline: compute waits for what was received
  kTransfer,  // in a pipeline: sends and receives, as one group operation
};

struct ValueMessage {
  Message message;
  std::vector<ValueRef> values;
};

struct Step {
  Do what = Do::kMark;
  int32_t group = -1;                    // of parameters or gradients: bucket group
  bool first = false;                    // gather: the first since weights were installed
  bool parts = false;                    // gather: from the parts that kReshard has kept
  bool last = false;                     // reduce: the step's gradient is complete with it
  spf_hook hook{};                       // mark
  int32_t module = -1;                   // mark
  ChunkPass of{-1, 0};                   // mark, and of a microbatch
  bool on_a2a = false;                   // run, chain: on the stream of exchanges, else on compute
  const char* schedule_node = "";        // run: under the 1F1B schedule
  bool chained = false;                  // open: with the event
  const spf_program* program = nullptr;  // open
  Operation operation;                   // run
  std::vector<ValueRef> dead;            // run
  std::vector<ValueMessage> messages;    // transfer
};

using Plan = std::vector<Step>;

}  // namespace reference
