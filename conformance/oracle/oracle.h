// oracle.h: what would one process that shards nothing and overlaps nothing have computed?
//
// Plain, sequential, unsharded: every sample of every microbatch of every rank in one loop, sums,
// one division, one optimizer. Shares with engines only the model's compute kernels.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/case.h"

namespace shardproof {

// What one entry call of the script should have produced. Parameters by their world-unique name
// (experts of all ep ranks included); those that are split over tp by shards (ShardName).
struct OracleCall {
  char letter = 'c';                // as ScriptCall
  int64_t step = -1;                // of t and e
  std::map<int64_t, float> losses;  // by sample; of t and e
  // Of t: reduced, scaled, before clipping; trainable ones only.
  std::map<std::string, std::vector<float>> grads;
  // Of t, with keep_samples: what each sample adds to grads, scaled; by sample. (With
  // context_parallel what each sequence adds.)
  std::vector<std::map<std::string, std::vector<float>>> sample_grads;
  // After the call; of c, t (those of before, if it was skipped), l. fp32 main weights.
  std::map<std::string, std::vector<float>> weights;
  // Of t and e, with routed experts: rows that a sample sends to each expert, with
  // sequence_parallel those of each tp rank's part, [tp, E], by the name of the value that says so
  // in the model ("layers.0.moe.expert_counts").
  std::map<std::pair<int64_t, std::string>, std::vector<int64_t>> expert_rows;
  double grad_norm = 0;
  double zero_count = 0;
  bool updated = false;  // t: weights changed (not skipped)
};

struct OracleRun {
  std::vector<OracleCall> calls;  // by entry call index, as ExpandScript lists them (create is 0)
  // Which part of the data had an effect at all, for deciding whether a planted fault can show.
  double saturated_fraction = 0, zero_grad_fraction = 0;
  // Only names and sizes are known, as of runs on a fabric that computes nothing: values are zero.
  bool names_only = false;
};

struct OracleOptions {
  // Run-time exactness check of every sum (debug; slow). Throws std::logic_error.
  bool check_bounds = false;
  // Nodes add to gradients in bf16: each of a sample is rounded at every addition, in the order of
  // the program's backward; samples are summed in fp32. REQUIRES: param_dtype = bf16, no routed
  // experts, whose rows come from several samples.
  bool bf16_node_grads = false;
  // The last entry call to play.
  int32_t last_call = INT32_MAX;
  bool keep_samples = false;
  // What an engine with a certain mistake would compute, to know it by its results.
  bool evals_count = false;  // each eval_step counts as an update of the optimizer
  int32_t clip_call = -1;    // in this entry call gradients are clipped as if their norm were
  double clip_norm = 0;      // this
};

// Of a case with several legs: of the last one.
OracleRun RunOracle(const Case& c, size_t instance, const OracleOptions& options = {});

}  // namespace shardproof
