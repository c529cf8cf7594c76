#include "reference/layerwise/ownership.h"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace reference {
namespace {

// Deals one item after the other: 0 .. n-1, n-1 .. 0, 0 .. n-1.
class PingPong {
 public:
  explicit PingPong(int32_t ranks, const char* group) : lists_(CheckedSize(ranks, group)) {}

  void Give(int32_t param) {
    const size_t n = lists_.size(), at = dealt_++ % (2 * n);
    lists_[at < n ? at : 2 * n - 1 - at].push_back(param);
  }
  RankLists Take() { return std::move(lists_); }

 private:
  static size_t CheckedSize(int32_t ranks, const char* group) {
    if (ranks < 1) {
      throw std::invalid_argument(std::string(group) + " has " + std::to_string(ranks) +
                                  " ranks: parameters are dealt to at least one");
    }
    return static_cast<size_t>(ranks);
  }

  RankLists lists_;
  size_t dealt_ = 0;
};

std::vector<ParamFacts> TrainableOf(const std::vector<ParamGroup>& groups) {
  std::vector<ParamFacts> all;
  std::set<int32_t> seen;
  for (const ParamGroup& group : groups) {
    for (const ParamFacts& param : group.params) {
      if (!seen.insert(param.param).second) {
        throw std::invalid_argument("parameter " + std::to_string(param.param) +
                                    " is in two groups, or twice in group " + group.name);
      }
      if (param.trainable) all.push_back(param);
    }
  }
  return all;
}

}  // namespace

Deal DealPingPong(const std::vector<ParamGroup>& groups, int32_t dense_ranks,
                  int32_t expert_ranks) {
  PingPong dense(dense_ranks, "dp_cp"), expert(expert_ranks, "expt_dp");
  std::vector<ParamFacts> params = TrainableOf(groups);
  std::ranges::stable_sort(params, {}, &ParamFacts::numel);
  for (const ParamFacts& param : params) (param.expert ? expert : dense).Give(param.param);
  return {dense.Take(), expert.Take()};
}

std::vector<ParamBucket> CutBuckets(const std::vector<ParamFacts>& params, int64_t bucket_size) {
  std::vector<ParamBucket> buckets;
  for (bool expert : {false, true}) {
    int64_t held = 0;
    bool open = false;
    for (size_t i = params.size(); i-- > 0;) {
      const ParamFacts& param = params[i];
      if (param.expert != expert || !param.trainable) continue;
      if (!open) buckets.push_back({{}, expert});
      held = (open ? held : 0) + param.numel;
      buckets.back().params.push_back(param.param);
      open = bucket_size == 0 || held < bucket_size;
    }
  }
  return buckets;
}

RankLists ListsOfBucket(const ParamBucket& bucket, const RankLists& lists) {
  const std::set<int32_t> wanted(bucket.params.begin(), bucket.params.end());
  std::set<int32_t> found;
  RankLists owned;
  for (const ParamIds& list : lists) {
    ParamIds& here = owned.emplace_back();
    for (int32_t param : list) {
      if (!wanted.contains(param)) continue;
      if (!found.insert(param).second)
        throw std::logic_error("parameter " + std::to_string(param) + " has two owners");
      here.push_back(param);
    }
  }
  for (int32_t param : bucket.params) {
    if (!found.contains(param))
      throw std::logic_error("parameter " + std::to_string(param) + " has no owner");
  }
  return owned;
}

}  // namespace reference
