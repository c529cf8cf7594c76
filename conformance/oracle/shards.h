// shards.h: which part of a whole tensor does a tensor-parallel rank hold?
#pragma once
#include "conformance/model/model.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {

// Replaces each tensor that is split over tp ranks by its shards, under their names (ShardName), in
// all results of the call. whole: the tables of a model with tp = 1.
void CutIntoShards(const spf_model& whole, int32_t tp, OracleCall& call);

}  // namespace shardproof
