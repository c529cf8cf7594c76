// tp_machine.h: what does the reference's Muon make of matrices whose shards lie on tensor-parallel
// ranks?
//
// Cases have the shapes of one model, and sums over two ranks. Here is more: the simulated machine
// with a host that records and refuses, tables of nothing but matrices (split by rows, by columns,
// or not at all), and the reference's own configuration, groups, buckets and optimizer, which are
// given shards and gradients instead of computing them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/fabric/sim/sim.h"

namespace shardproof {

// One parameter, whole. Elements are row-major.
struct TpMatrix {
  int64_t rows = 0, cols = 0;
  int32_t dim = -1;        // split over the ranks of its group: 0 rows, 1 columns, -1 not at all
  bool fused_qkv = false;  // named ...attention.qkv
  bool expert = false;     // split over expt_tp instead of tp
  std::vector<float> weight;
  std::vector<std::vector<float>> grads;  // by step
};

struct TpRequest {
  int32_t tp = 1, expert_tp = 1;  // sizes of groups of neighbours
  int32_t dp = 1;                 // the world is tp * dp ranks
  bool dealt = false;             // matrix i is stepped by data-parallel rank i % dp alone
  std::map<std::string, std::string> knobs;
  std::vector<TpMatrix> matrices;
  SimOptions sim;
};

// A collective that a rank issued.
struct TpOperation {
  int32_t kind = 0, dtype = 0;
  int64_t count = 0;
  std::string group;
  bool operator==(const TpOperation&) const = default;
};

struct TpRank {
  // This rank's shards, by matrix; empty where it does not step the matrix.
  std::vector<std::vector<float>> weights, momenta;
  std::vector<TpOperation> operations;
};
struct TpAnswer {
  std::vector<TpRank> ranks;
  std::string wrong;  // what was refused, thrown, mismatched or never freed; empty: nothing
};

// Steps all matrices as often as there are gradients.
TpAnswer StepOnTpRanks(const TpRequest& request);

// The shard of one of so many ranks.
std::vector<float> ShardOf(const std::vector<float>& whole, int64_t rows, int64_t cols, int32_t dim,
                           int32_t ranks, int32_t rank);

}  // namespace shardproof
