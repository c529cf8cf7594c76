// units.h: which parameters are gathered and reduced together?
//
// FSDP units are the outermost modules of the unit types. A unit's parameters, and apart from them
// the parameters that belong to no unit or to several, are grouped into buckets that are
// homogeneous in dtype, expertness, requires_grad and unit (FS-30), in who steps them (Muon or
// not), and whose rows divide one another, in order of first appearance in the model's tables.
// Buckets and their order are the same on all ranks: no hash order, no data, no program of one rank
// (NVIDIA/Megatron-LM#2218).
#pragma once
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "reference/core/layout.h"
#include "reference/core/tables.h"

namespace reference {

constexpr int32_t kNoUnit = -1;

struct BucketPlan {
  int32_t unit = kNoUnit;
  bool expert = false;  // by flag, not by name (a name-based test misroutes renamed experts)
  bool trainable = true;
  bool muon = false;  // stepped as whole matrices, with a momentum instead of Adam's averages
  spf_dtype dtype = SPF_F32;
  std::vector<ParamShape> params;

  bool MayHold(const BucketPlan& other) const {
    return std::tie(unit, expert, trainable, muon, dtype) ==
           std::tie(other.unit, other.expert, other.trainable, other.muon, other.dtype);
  }
};

// What a bucket of this parameter is, without parameters. muon: by parameter id, which ones Muon
// steps; empty: none.
BucketPlan KindOf(const spf_model& model, int32_t param, int32_t unit,
                  const std::vector<bool>& muon);

// Buckets whose collectives are issued as one group operation: those of one unit and one
// communicator. A bucket outside units stands alone.
struct BucketGroup {
  int32_t unit = kNoUnit;
  bool expert = false;
  std::vector<int32_t> buckets;
  // Of these buckets the copy of the parameters that backward reads: a group of its own, which
  // comes and goes by itself and has no gradients.
  bool for_backward = false;
};

// A unit whose nodes come again after those of a later unit (an embedding that a second head's
// input needs), and the module whose place in forward order follows.
struct Reentry {
  int32_t unit = kNoUnit;
  int32_t before = 0;
  bool in_backward =
      true;  // these nodes have one: not where the unit is frozen and reads no output
  bool operator==(const Reentry&) const = default;
};

struct ModelPlan {
  std::vector<int32_t> unit_modules;  // by unit: its module, ascending
  std::vector<int32_t> module_unit;   // by module: the unit that contains it, or kNoUnit
  std::vector<int32_t> param_bucket;  // by parameter
  std::vector<BucketPlan> buckets;    // in order of first appearance
  std::vector<BucketGroup> groups;
  std::vector<std::vector<int32_t>> unit_groups;  // by unit: its bucket groups
  // By unit: those of the copies that backward reads, in the same order. Empty: forward's do.
  std::vector<std::vector<int32_t>> unit_backward_groups;
  // By unit: whether backward comes this way: not before the first trainable parameter, because
  // nothing upstream of it gets a gradient. Decided by flags, so that ranks whose program leaves
  // the unit out decide alike.
  std::vector<bool> unit_in_backward;
  // By unit: one of those that share double buffers, the largest number of units whose buckets are
  // alike (Megatron-FSDP's FixedPoolAllocator). Of several such sets the first.
  std::vector<bool> unit_alike;
  std::vector<int32_t> root_groups;   // those outside units
  std::vector<int32_t> bucket_group;  // by bucket
  std::vector<Reentry> reentries;

  int32_t GroupOfParam(int32_t param) const { return At(bucket_group, At(param_bucket, param)); }
  // Where forward or backward reads the parameter.
  int32_t GroupReadOf(int32_t param, bool backward) const;

  // Of a unit: what its backward reads.
  const std::vector<int32_t>& GroupsForBackward(int32_t unit) const {
    return At(unit_backward_groups.empty() ? unit_groups : unit_backward_groups, unit);
  }

  int32_t units() const { return Length(unit_modules); }
};

// bucket_size: elements after which a bucket outside units is closed; 0 never. muon: as in KindOf.
ModelPlan PlanModel(const spf_model& model, const std::vector<std::string>& unit_types,
                    int64_t bucket_size, const std::vector<const spf_program*>& programs,
                    const std::vector<bool>& muon = {});

// Of all units: copies for backward, behind all other groups.
void AddBackwardCopies(ModelPlan& plan);

}  // namespace reference
