#include "reference/layerwise/layer_buckets.h"

#include <algorithm>
#include <functional>

#include "reference/layerwise/aligned_layout.h"

namespace reference {
namespace {

struct PlannedBucket {
  BucketPlan plan;
  BucketLayout layout;
};

// The parameter that forward needs first.
int32_t FirstOf(const BucketLayout& layout) {
  return std::ranges::min(layout.items, {}, &BucketItem::param).param;
}

std::set<int32_t> ReadBySeveralModules(const std::vector<const spf_program*>& programs) {
  std::map<int32_t, std::set<int32_t>> readers;
  for (const spf_program* program : programs) {
    for (const spf_node& node : NodesOf(*program)) {
      for (const spf_use& use : UsesOf(node, SPF_FWD)) {
        if (use.table == SPF_IN_PARAM) readers[use.id].insert(node.module);
      }
    }
  }
  std::set<int32_t> several;
  for (const auto& [param, modules] : readers) {
    if (modules.size() > 1) several.insert(param);
  }
  return several;
}

class Planner {
 public:
  Planner(const spf_model& model, const Config& config, const EngineGroups& groups,
          const std::vector<const spf_program*>& programs, const std::vector<bool>& muon)
      : model_(model),
        config_(config),
        dense_ranks_(groups.dense.reduce.size()),
        expert_ranks_(groups.expert ? groups.expert->reduce.size() : 1),
        shared_(ReadBySeveralModules(programs)),
        muon_(muon) {}

  LayerPlan Run() {
    SortIntoKinds();
    Deal();
    for (Kind& kind : kinds_) {
      if (!kind.plan.trainable) {
        Replicate(kind);
      } else if (config_.aligned_layout && RanksOf(kind) > 1) {
        Align(kind);
      } else {
        Cut(kind);
      }
    }
    std::ranges::stable_sort(buckets_, std::greater{},
                             [](const PlannedBucket& b) { return FirstOf(b.layout); });
    return Collect();
  }

 private:
  // Parameters that may share a bucket, in model order.
  struct Kind {
    BucketPlan plan;
    std::vector<ParamFacts> params;
  };

  ParamFacts FactsOf(int32_t p) const {
    const spf_param& param = model_.params[p];
    const int64_t rows = IsMuon(p) ? param.shape[0] : 0, cols = IsMuon(p) ? param.shape[1] : 0;
    return {p, param.numel, rows, cols, IsExpert(param), IsTrainable(param), shared_.contains(p)};
  }
  int32_t RanksOf(const Kind& kind) const {
    return kind.plan.expert ? expert_ranks_ : dense_ranks_;
  }
  bool IsMuon(int32_t p) const { return !muon_.empty() && At(muon_, p); }

  void SortIntoKinds() {
    for (int32_t p = 0; p < model_.n_params; ++p) {
      const BucketPlan plan = KindOf(model_, p, kNoUnit, muon_);
      const auto same = [&](const Kind& kind) { return kind.plan.MayHold(plan); };
      auto found = std::ranges::find_if(kinds_, same);
      if (found == kinds_.end()) found = kinds_.insert(kinds_.end(), {plan, {}});
      found->params.push_back(FactsOf(p));
    }
  }

  // All kinds together, so that ranks own about as many parameters whatever the buckets are.
  void Deal() {
    std::vector<ParamGroup> groups{{"muon", {}}, {"other", {}}};
    for (int32_t p = 0; p < model_.n_params; ++p)
      groups[IsMuon(p) ? 0 : 1].params.push_back(FactsOf(p));
    deal_ = DealPingPong(groups, dense_ranks_, expert_ranks_);
  }

  void Cut(const Kind& kind) {
    for (const ParamBucket& bucket : CutBuckets(kind.params, config_.bucket_size)) {
      const RankLists lists = ListsOfBucket(bucket, kind.plan.expert ? deal_.expert : deal_.dense);
      BucketLayout layout;
      layout.shards = Length(lists);
      for (const ParamIds& owned : lists) {
        layout.bounds.push_back(layout.size);
        for (int32_t p : owned) Append(layout, p);
      }
      layout.bounds.push_back(layout.size);
      buckets_.push_back({kind.plan, std::move(layout)});
    }
  }

  void Align(const Kind& kind) {
    const AlignedLayout aligned = LayOutAligned(kind.params, RanksOf(kind), config_.bucket_size);
    aligned.Owners();  // no parameter crosses an edge
    for (const AlignedBucket& bucket : aligned.buckets) {
      BucketLayout layout;
      layout.shards = aligned.shards;
      layout.size = aligned.shards * bucket.shard_size;
      for (const AlignedItem& item : bucket.items)
        layout.items.push_back({item.param, item.begin - bucket.begin, item.numel});
      buckets_.push_back({kind.plan, std::move(layout)});
    }
  }

  void Replicate(const Kind& kind) {
    BucketLayout layout;
    for (const ParamFacts& facts : kind.params) Append(layout, facts.param);
    buckets_.push_back({kind.plan, std::move(layout)});
  }

  void Append(BucketLayout& layout, int32_t p) const {
    const int64_t numel = model_.params[p].numel;
    layout.items.push_back({p, layout.size, numel});
    layout.size += numel;
  }

  LayerPlan Collect() {
    LayerPlan plan;
    plan.model.module_unit.assign(static_cast<size_t>(model_.n_modules), kNoUnit);
    plan.model.param_bucket.assign(static_cast<size_t>(model_.n_params), -1);
    for (PlannedBucket& bucket : buckets_) {
      const int32_t id = Length(plan.layouts);
      for (const BucketItem& item : bucket.layout.items) {
        bucket.plan.params.push_back({item.param, item.numel, 1});
        At(plan.model.param_bucket, item.param) = id;
      }
      plan.model.buckets.push_back(std::move(bucket.plan));
      plan.model.groups.push_back({kNoUnit, plan.model.buckets.back().expert, {id}});
      plan.model.root_groups.push_back(id);
      plan.model.bucket_group.push_back(id);
      plan.modules.push_back(model_.params[FirstOf(bucket.layout)].module);
      plan.layouts.push_back(std::move(bucket.layout));
    }
    return plan;
  }

  const spf_model& model_;
  const Config& config_;
  const int32_t dense_ranks_, expert_ranks_;
  const std::set<int32_t> shared_;
  const std::vector<bool>& muon_;
  std::vector<Kind> kinds_;
  reference::Deal deal_;
  std::vector<PlannedBucket> buckets_;
};

}  // namespace

LayerPlan PlanLayers(const spf_model& model, const Config& config, const EngineGroups& groups,
                     const std::vector<const spf_program*>& programs,
                     const std::vector<bool>& muon) {
  return Planner(model, config, groups, programs, muon).Run();
}

std::vector<Bucket> MakeLayerBuckets(const Config& config, const EngineGroups& groups,
                                     const LayerPlan& plan) {
  std::vector<Bucket> buckets;
  for (size_t i = 0; i < plan.layouts.size(); ++i) {
    Bucket& bucket = buckets.emplace_back();
    bucket.plan = plan.model.buckets[i];
    bucket.layout = plan.layouts[i];
    bucket.groups = bucket.plan.expert ? *groups.expert : groups.dense;
    bucket.module = plan.modules[i];
    bucket.grad_dtype = config.main_grads_dtype;
    if (!bucket.plan.trainable) continue;
    bucket.shard = bucket.groups.reduce.rank;
    if (!config.aligned_layout) continue;
    bucket.inner_rank = bucket.shard;
    bucket.inner_size = bucket.groups.reduce.size();
  }
  return buckets;
}

}  // namespace reference
