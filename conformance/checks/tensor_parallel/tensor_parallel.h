// tensor_parallel.h: does an engine sum over tp what its ranks hold parts of, and nothing else?
//
// Judges TP-01 to TP-11, in cases with tensor_parallel and a tp of more than one rank, and CP-01 to
// CP-03, in cases with context_parallel and a cp of more than one rank. What collectives sum is
// followed by bytes (value_walk.h), whose gradients are in a sum by contributions (gradients.cc),
// norms and numbers of zeros by what the oracle's gradients make of usual mistakes (statistics.cc),
// what Muon exchanges by how much of it arrives (muon_exchange.cc).
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckTensorParallel(const Analysis& a);

// Communication of a rank with ranks of other shards that brings something, and does not carry only
// what is known to be values of nodes. plain: it carries none of them.
struct Crossing {
  int64_t event = -1;
  bool plain = true;
};
using OverTp = std::vector<std::vector<Crossing>>;  // by rank

// Its parts. over_tp is filled in, where a rank's trace allows it.
CheckResult CheckTpSums(const Analysis& a, OverTp& over_tp);  // TP-01 to -03, -08, -10, -11, CP-*
CheckResult CheckTpGradients(const Analysis& a);              // TP-04, TP-05, TP-09
CheckResult CheckTpStatistics(const Analysis& a);             // TP-06
CheckResult CheckTpMuon(const Analysis& a, const OverTp& over_tp);  // TP-07

// Ranks of tp hold parts of the sequence, in some instance.
bool HasParts(const Analysis& a);

// What the following of values says of such a case: whatever it trains.
std::set<std::string> ShownBySums(const InstanceFacts& facts);
// What each run of such a case shows.
std::set<std::string> ShownWithTensorParallel(const InstanceFacts& facts);

// The node stands for a collective over tp.
inline bool MeetsOverTp(const spf_node& node) {
  return node.kind == SPF_NODE_ALL_REDUCE || node.kind == SPF_NODE_ALL_GATHER ||
         node.kind == SPF_NODE_REDUCE_SCATTER;
}

// The node stands for a collective over cp.
inline bool MeetsOverCp(const spf_node& node) { return node.kind == SPF_NODE_ALL_GATHER_CP; }

// Ranks have parts of one sequence.
inline bool SharesSequences(const InstanceFacts& facts) { return facts.spec().model.cp > 1; }

// The model of the case is split over ranks.
inline bool IsSplit(const InstanceFacts& facts) { return facts.spec().model.tp > 1; }

}  // namespace shardproof
