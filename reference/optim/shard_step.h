// shard_step.h: how is a matrix stepped whose shards lie on the ranks of a tensor-parallel group?
#pragma once
#include "reference/core/context.h"
#include "reference/muon/tensor_parallel.h"

namespace reference {

// The ranks that hold the other shards of a parameter: experts have a group of their own.
const Communicator& TpRanksOf(const Context& context, int32_t param);
TpSplit SplitOf(const Context& context, int32_t param);

// weight moves by the orthogonalised u; both fp32, this rank's shard of the parameter. Collective
// over TpRanksOf, on the compute stream. REQUIRES: SplitOf(context, param).splits(). Throws
// std::invalid_argument, on every rank and before anything is launched, if the split cuts what is
// orthogonalised by itself.
void StepShard(Context& context, int32_t param, int32_t module, spf_addr u, spf_addr weight);

}  // namespace reference
