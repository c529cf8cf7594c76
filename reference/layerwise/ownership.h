// ownership.h: which rank steps which parameter, when whole parameters are dealt to ranks?
//
// A rank keeps the fp32 main weight and the optimizer state of the parameters it owns and steps
// only those; a parameter is never split, because Newton-Schulz needs the whole matrix. Dense
// parameters are dealt over dp_cp, expert ones over expt_dp, each by itself: either group may have
// one rank while the other has many. Everything here is a pure function of shapes, flags and order,
// so every rank computes the same table without a message.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace reference {

// What ownership depends on. Parameters are listed in model order (order of registration).
struct ParamFacts {
  int32_t param = -1;           // id
  int64_t numel = 0;            // may be 0: owned, and nothing is sent for it
  int64_t rows = 0, cols = 0;   // of a matrix that Newton-Schulz orthogonalises; else 0
  bool expert = false;          // dealt over expt_dp
  bool trainable = true;        // false: no owner, no bucket
  bool tied_embedding = false;  // read at both ends of the model
  bool operator==(const ParamFacts&) const = default;
};

// Parameters that share an optimizer and its options, in creation order: the group's number is its
// identity in a checkpoint, so groups are the same, and as many, on every rank.
struct ParamGroup {
  std::string name;
  std::vector<ParamFacts> params;
};

using ParamIds = std::vector<int32_t>;

// Lists by rank of one communicator; what is in list r is owned by rank r. Never empty: a
// communicator of one rank has one list, with everything.
using RankLists = std::vector<ParamIds>;

struct Deal {
  RankLists dense;   // by dp_cp rank
  RankLists expert;  // by expt_dp rank
};

// Deals the trainable parameters of all groups together by size, smallest first, equal sizes in
// order of group and then of model, along ranks 0 .. N-1, N-1 .. 0 and again. So every rank has as
// many parameters as any other, give or take one; ranks beyond the number of parameters have none.
// A list is in the order of the deal. Throws std::invalid_argument for a number of ranks below 1 or
// a parameter that is listed twice.
Deal DealPingPong(const std::vector<ParamGroup>& groups, int32_t dense_ranks, int32_t expert_ranks);

// ------------------------------------------------------------------ what a gather moves

struct ParamBucket {
  ParamIds params;  // in the order of the gradient buffer: last parameter of the model first
  bool expert = false;
};

// Buckets of all-reduced gradients, dense ones first: trainable parameters in reverse model order,
// a bucket closed as soon as it holds bucket_size elements; 0: one bucket. Without padding.
std::vector<ParamBucket> CutBuckets(const std::vector<ParamFacts>& params, int64_t bucket_size);

// Who sends what when a bucket's parameters are gathered: by rank, in the order of the deal; none
// where a rank owns nothing of this bucket. The same on every rank. REQUIRES: lists own every
// parameter of the bucket once. Throws std::logic_error otherwise, naming the parameter.
RankLists ListsOfBucket(const ParamBucket& bucket, const RankLists& lists);

}  // namespace reference
