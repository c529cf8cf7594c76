// facts.h: what does the case say about a rank, a parameter, a unit and an entry call?
//
// Everything here follows from the case alone (closed forms, model tables); nothing comes from the
// engine.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/checks/base/check.h"
#include "conformance/common/at.h"
#include "conformance/model/model.h"

namespace shardproof {

// One parameter as one rank sees it. key is unique in the instance: ranks that hold the same
// tensor, or the same shard of it, agree on it.
struct ParamFacts {
  std::string name;    // of a shard too: "layers.0.mlp.fc1.weight [tp 1 of 2]"
  std::string tensor;  // as the model's tables name it
  int32_t key = -1;
  int64_t numel = 0;
  int64_t row = 1;  // elements of one row of dimension 0
  bool expert = false, frozen = false;
  bool part = false;    // gradients are those of parts of the sequence, until summed over tp
  bool matrix = false;  // of a layer: optimizer = muon orthogonalises it (abi/KNOBS.md)
  int32_t dtype = 0;    // in which nodes read it
  int32_t module = 0;
  int32_t unit =
      -1;  // module id of the FSDP unit that it belongs to; -1: none, or others use it too (tied)
};

// One engine instance of the case.
class InstanceFacts {
 public:
  // Throws std::invalid_argument when the model cannot be built from the case.
  InstanceFacts(const InstanceSpec& spec, int32_t world);

  const InstanceSpec& spec() const { return *spec_; }
  const Model& model() const { return *model_; }
  const std::vector<GroupFamily>& families() const { return families_; }
  const std::vector<ScriptCall>& calls() const { return calls_; }
  // The entry call that an event names. One that the script does not have is as destroy is.
  ScriptCall CallAt(int32_t call) const {
    return call >= 0 && call < Length(calls_) ? At(calls_, call) : ScriptCall{'d', -1};
  }

  bool InGrid(int32_t world_rank) const { return At(data_rank_, world_rank) >= 0; }
  int32_t DataRank(int32_t world_rank) const { return At(data_rank_, world_rank); }
  // Which part of the model a world rank holds.
  ModelRank Place(int32_t world_rank) const { return At(place_, world_rank); }
  int32_t n_params(int32_t world_rank) const;
  int32_t n_keys() const { return static_cast<int32_t>(by_key_.size()); }
  // By local parameter id, as this world rank sees it; and by key.
  const ParamFacts& Param(int32_t world_rank, int32_t local) const;
  const ParamFacts& ByKey(int32_t key) const;
  // The unit that a module of the rank is in, or -1.
  int32_t UnitOfModule(int32_t module, int32_t world_rank) const;
  // Forward of one microbatch and backward of another interleave (1F1B): rules about one unit at a
  // time do not hold; the schedule's own do.
  bool Interleaves() const { return spec_->overlap_moe; }
  // Of the rank: module ids differ between stages of a pipeline.
  const std::vector<int32_t>& units(int32_t world_rank) const {
    return At(units_, Place(world_rank).pp).units;
  }
  // The units that share buffers with fsdp_double_buffer: the largest set of units with the same
  // buckets, not empty, by size, row, dtype and kind; of several such sets the first. A bucket has
  // parameters of one dtype, dense or of experts, frozen or not.
  std::vector<int32_t> UnitsAlike(int32_t world_rank) const;
  // In some microbatch of this entry call the unit is not in the rank's program, or not in its
  // backward.
  bool UnitMayBeAbsent(int32_t world_rank, int32_t call, int32_t unit) const;
  const spf_node& Node(int32_t id, int32_t world_rank) const {
    return model_->Node(id, Place(world_rank));
  }
  int32_t node_count(int32_t world_rank) const { return model_->node_count(Place(world_rank)); }
  std::string ModuleName(int32_t module, int32_t world_rank) const;

  // The list of the named family that the rank is in; null if there is none.
  const std::vector<int32_t>* List(std::string_view family, int32_t world_rank) const;
  // Ranks over which a parameter is sharded (and, with hybrid, reduced first), over which replicas
  // or second-level shards are, and over which it is reduced in all.
  const std::vector<int32_t>* InnerList(bool expert, int32_t world_rank) const;
  const std::vector<int32_t>* OuterList(bool expert,
                                        int32_t world_rank) const;  // null without outer
  const std::vector<int32_t>* FullList(bool expert, int32_t world_rank) const;
  // A sum over all ranks of tp, and no others, of gradients of parts of the sequence alone.
  bool SumsParts(const std::vector<int32_t>& ranks, int32_t world_rank,
                 const std::vector<const ParamFacts*>& params) const;
  // Over which dense parameters are gathered again for backward; null without
  // reshard_after_forward > 1.
  const std::vector<int32_t>* PartList(bool expert, int32_t world_rank) const;
  // A right twin is part of the case, for parameters of the kind.
  bool Twin(bool expert) const;

 private:
  struct Units {
    std::vector<int32_t> units, of_module;
  };
  Units UnitsOf(int32_t pp) const;
  // Of each bucket: dtype, of experts or not, elements and row of each parameter.
  using UnitShape =
      std::vector<std::tuple<int32_t, bool, std::vector<std::pair<int64_t, int64_t>>>>;
  UnitShape ShapeOf(int32_t unit, int32_t world_rank) const;
  static int32_t UnitIn(const Units& units, int32_t module);
  void FindShared(ModelRank place);
  const InstanceSpec* spec_;
  std::unique_ptr<Model> model_;
  std::vector<GroupFamily> families_;
  std::vector<ScriptCall> calls_;
  void AddParams(ModelRank place);
  static bool IsMatrix(const spf_model& tables, const spf_param& param);
  std::vector<int32_t> data_rank_;                       // by world rank
  std::vector<ModelRank> place_;                         // by world rank
  std::vector<Units> units_;                             // by place in the pipeline
  std::map<ModelRank, std::vector<ParamFacts>> params_;  // by local id
  std::vector<ParamFacts> by_key_;                       // as the first rank that holds it sees it
};

std::string ListText(const std::vector<int32_t>& ranks);

}  // namespace shardproof
