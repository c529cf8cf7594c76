#include "reference/layerwise/aligned_layout.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace reference {
namespace {

constexpr int64_t kAlignment = 64;  // elements: where a parameter may begin

// A parameter without elements takes the room of one, so that it lies in some shard.
int64_t RoomOf(int64_t numel) { return std::max<int64_t>(numel, 1); }

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Every shard is a multiple of this, so that a bucket is one of lcm(N, 128).
int64_t ShardMultiple(int32_t shards) {
  return std::lcm(kAlignment, std::lcm(int64_t{shards}, int64_t{128}) / shards);
}

// What a chunk of parameters would fill, estimated in the order in which they come: each goes to
// the shard that holds the fewest elements.
class Estimate {
 public:
  Estimate(int32_t shards, int64_t multiple)
      : filled_(static_cast<size_t>(shards)), multiple_(multiple) {}

  void Add(int64_t numel) {
    int64_t& least = *std::min_element(filled_.begin(), filled_.end());
    least = RoundUp(least, kAlignment) + RoomOf(numel);
  }
  bool Grows(int64_t numel) const {
    const int64_t least = *std::min_element(filled_.begin(), filled_.end());
    const int64_t most = *std::max_element(filled_.begin(), filled_.end());
    return RoundUp(least, kAlignment) + RoomOf(numel) > RoundUp(most, multiple_);
  }

 private:
  std::vector<int64_t> filled_;
  int64_t multiple_;
};

class Packer {
 public:
  Packer(int32_t shards, int64_t bucket_size)
      : bucket_size_(bucket_size), multiple_(ShardMultiple(shards)), estimate_(shards, multiple_) {
    layout_.shards = shards;
    layout_.cost.resize(static_cast<size_t>(shards));
  }

  void Add(const ParamFacts& param) {
    if (param.tied_embedding) {
      Close();
      chunk_.push_back(param);
      return Close();
    }
    if (IsFull() && estimate_.Grows(param.numel)) Close();
    chunk_.push_back(param);
    estimate_.Add(param.numel);
  }
  AlignedLayout Finish() {
    Close();
    return std::move(layout_);
  }

 private:
  int64_t ChunkElements() const {
    int64_t elements = 0;
    for (const ParamFacts& param : chunk_) elements += param.numel;
    return elements;
  }

  bool IsFull() const {
    if (bucket_size_ == 0 || chunk_.empty()) return false;
    const int64_t largest = std::ranges::max(chunk_, {}, &ParamFacts::numel).numel;
    return ChunkElements() >= std::max(bucket_size_, 9 * layout_.shards * largest / 10);
  }

  // The most expensive parameter first, to the shard with the least work so far among those that it
  // does not fill beyond 1.3 times the mean; if there is none, to the emptiest.
  void Close() {
    if (chunk_.empty()) return;
    const int64_t elements = ChunkElements();
    std::ranges::stable_sort(chunk_, std::greater{}, StepCost);
    const auto shards = static_cast<size_t>(layout_.shards);
    std::vector<int64_t> filled(shards);
    std::vector<std::pair<size_t, AlignedItem>> placed;  // begin: within the shard
    for (const ParamFacts& param : chunk_) {
      const size_t shard = param.tied_embedding ? 0 : Choose(param, filled, elements);
      const int64_t begin = RoundUp(filled[shard], kAlignment);
      placed.push_back({shard, {param.param, begin, param.numel}});
      filled[shard] = begin + RoomOf(param.numel);
      layout_.cost[shard] += StepCost(param);
    }
    AlignedBucket bucket;
    bucket.begin = layout_.size();
    bucket.shard_size = RoundUp(*std::max_element(filled.begin(), filled.end()), multiple_);
    for (auto& [shard, item] : placed) {
      item.begin += bucket.begin + static_cast<int64_t>(shard) * bucket.shard_size;
      bucket.items.push_back(item);
    }
    std::ranges::stable_sort(bucket.items, {}, &AlignedItem::begin);
    layout_.buckets.push_back(std::move(bucket));
    chunk_.clear();
    estimate_ = Estimate(layout_.shards, multiple_);
  }

  size_t Choose(const ParamFacts& param, const std::vector<int64_t>& filled,
                int64_t chunk_elements) const {
    size_t best = filled.size(), emptiest = 0;
    for (size_t s = 0; s < filled.size(); ++s) {
      if (filled[s] < filled[emptiest]) emptiest = s;
      const int64_t would_hold = RoundUp(filled[s], kAlignment) + RoomOf(param.numel);
      if (10 * would_hold * layout_.shards > 13 * chunk_elements) continue;
      if (best == filled.size() || layout_.cost[s] < layout_.cost[best]) best = s;
    }
    return best == filled.size() ? emptiest : best;
  }

  int64_t bucket_size_, multiple_;
  AlignedLayout layout_;
  std::vector<ParamFacts> chunk_;
  Estimate estimate_;
};

}  // namespace

int64_t StepCost(const ParamFacts& param) {
  if (param.rows == 0) return param.numel;
  return param.numel * std::min(param.rows, param.cols);
}

int64_t AlignedLayout::size() const {
  if (buckets.empty()) return 0;
  return buckets.back().begin + shards * buckets.back().shard_size;
}

RankLists AlignedLayout::Owners() const {
  RankLists lists(static_cast<size_t>(shards));
  for (const AlignedBucket& bucket : buckets) {
    for (const AlignedItem& item : bucket.items) {
      const int64_t from = item.begin - bucket.begin, to = from + item.numel;
      const int64_t shard = from / bucket.shard_size;
      if (shard >= shards || to > (shard + 1) * bucket.shard_size) {
        throw std::logic_error("parameter " + std::to_string(item.param) + " at elements [" +
                               std::to_string(from) + ", " + std::to_string(to) +
                               ") of a bucket crosses the edge of a shard of " +
                               std::to_string(bucket.shard_size));
      }
      lists[static_cast<size_t>(shard)].push_back(item.param);
    }
  }
  return lists;
}

AlignedLayout LayOutAligned(const std::vector<ParamFacts>& params, int32_t shards,
                            int64_t bucket_size) {
  if (shards < 1) throw std::invalid_argument("shards = " + std::to_string(shards));
  if (bucket_size < 0) throw std::invalid_argument("bucket_size = " + std::to_string(bucket_size));
  Packer packer(shards, bucket_size);
  for (size_t i = params.size(); i-- > 0;) {
    if (params[i].expert != params.front().expert)
      throw std::invalid_argument("dense and expert parameters share no buffer");
    if (params[i].trainable) packer.Add(params[i]);
  }
  return packer.Finish();
}

}  // namespace reference
