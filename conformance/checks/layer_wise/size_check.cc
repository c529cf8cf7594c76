// How much a bucket holds: the cut by bucket_size where parameters are dealt, the padding of
// aligned shards.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "conformance/checks/layer_wise/layer_wise.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof::layer_wise {

namespace {

constexpr int64_t kStart = 256;  // bytes: a multiple of it is where an aligned parameter may begin
constexpr int64_t kMostShard = 1 << 16;  // elements: a shard is a multiple of no more
constexpr int64_t kShard = 64;  // elements: what NCCL asks of a shard, with lcm(N, 128) of a bucket

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class Sizes : RankCheck {
 public:
  Sizes(const Facts& facts, int32_t rank, CheckResult& result) : RankCheck(facts, rank, result) {}

  void Run() {
    for (const Reduction& reduction : facts_.At(rank_).reductions) {
      if (facts_.LayerWise(reduction.instance) && !facts_.Aligned(reduction.instance))
        JudgeCut(reduction);
    }
    for (const Gather& gather : facts_.At(rank_).gathers) Collect(gather);
    for (const Gather& gather : facts_.At(rank_).gathers) {
      if (facts_.Aligned(gather.instance) && gather.group->world_ranks.size() > 1)
        JudgePadding(gather);
    }
  }

 private:
  using Key = std::pair<int32_t, int32_t>;  // instance, key

  // The parameter that closed the bucket found it below bucket_size. Which one that was is the
  // engine's: at most it is the largest. Gradients that are zero have no name, so the bucket may be
  // larger than what is seen of it.
  void JudgeCut(const Reduction& reduction) {
    const int64_t cut = facts_.spec(reduction.instance).bucket_size;
    if (cut <= 0 || reduction.group->world_ranks.size() < 2) return;
    report_.Judged({"LW-07"});
    const Event& event = At(facts_.a().trace(rank_).events, reduction.event);
    const auto width = std::max<int64_t>(1, static_cast<int64_t>(DtypeBytes(event.dtype)));
    std::map<int32_t, int64_t> elements;  // by key
    int64_t all = 0, largest = 0;
    for (const Chunk& chunk : reduction.grads) {
      int64_t& of_one = elements[chunk.content.param];
      of_one += chunk.length / width;
      all += chunk.length / width;
      largest = std::max(largest, of_one);
    }
    if (all - largest < cut) return;
    report_.Add(
        "LW-07", rank_, reduction.event,
        "a bucket that is closed once it holds bucket_size = " + std::to_string(cut) + " elements",
        std::to_string(all) + " elements of " + std::to_string(elements.size()) + " parameters, " +
            std::to_string(largest) + " of them of the largest",
        "a bucket takes in parameters although it is full");
  }

  void Collect(const Gather& gather) {
    for (const Share& share : gather.shares) {
      from_[{gather.instance, share.key}] = share.from;
      for (const Share& other : gather.shares)
        together_[{gather.instance, share.key}].insert(other.key);
    }
  }

  // Each trainable parameter was seen in a gather. What no step changed after a load never is:
  // bytes of a file have no name.
  bool AllSeen(int32_t instance) const {
    const InstanceFacts& of = facts_.Of(instance);
    for (int32_t id = 0; id < of.n_params(rank_); ++id) {
      const ParamFacts& param = of.Param(rank_, id);
      const std::vector<int32_t>* list = facts_.List(instance, rank_, param.key);
      if (param.frozen || param.numel == 0 || list == nullptr || list->size() < 2) continue;
      if (!from_.contains({instance, param.key})) return false;
    }
    return true;
  }

  void JudgePadding(const Gather& gather) {
    if (!AllSeen(gather.instance)) return;
    report_.Judged({"LW-14"});
    const InstanceFacts& of = facts_.Of(gather.instance);
    std::set<int32_t> keys;
    for (const Share& share : gather.shares) {
      const std::set<int32_t>& bucket = together_.at({gather.instance, share.key});
      keys.insert(bucket.begin(), bucket.end());
    }
    std::map<int32_t, int64_t> filled;  // by rank
    const auto start_of = [&](int32_t key) {
      return kStart / std::max<int64_t>(1, static_cast<int64_t>(DtypeBytes(of.ByKey(key).dtype)));
    };
    for (const int32_t key : keys)
      filled[from_.at({gather.instance, key})] += RoundUp(of.ByKey(key).numel, start_of(key));
    int64_t empty = 0;  // parameters without elements, which begin somewhere too
    for (int32_t id = 0; id < of.n_params(rank_); ++id) {
      empty += !of.Param(rank_, id).frozen && of.Param(rank_, id).numel == 0;
    }
    int64_t fullest = 0;
    for (const auto& [rank, elements] : filled)
      fullest = std::max(fullest, elements + empty * start_of(*keys.begin()));
    const auto members = static_cast<int64_t>(gather.group->world_ranks.size());
    const int64_t multiple = std::lcm(kShard, std::lcm(members, int64_t{128}) / members);
    const int64_t shown = AlignmentShown(facts_.At(rank_), gather.instance, kMostShard);
    const int64_t most = std::max(RoundUp(fullest, multiple), RoundUp(fullest, shown)),
                  seen = *std::max_element(gather.slots.begin(), gather.slots.end());
    if (seen <= most) return;
    report_.Add("LW-14", rank_, gather.event,
                "shards of at most " + std::to_string(most) +
                    " elements: what the fullest one holds, padded",
                std::to_string(seen) + " elements",
                "aligned shards are padded further than their alignment asks for");
  }

  std::map<Key, int32_t> from_;                // world rank in whose shard it lies
  std::map<Key, std::set<int32_t>> together_;  // keys that are gathered with it
};

}  // namespace

CheckResult CheckSizes(const Facts& facts) {
  CheckResult result;
  for (int32_t rank = 0; rank < facts.a().ranks(); ++rank) Sizes(facts, rank, result).Run();
  return result;
}

}  // namespace shardproof::layer_wise
