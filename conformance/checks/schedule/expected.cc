#include "conformance/checks/schedule/expected.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/common/at.h"

namespace shardproof::schedule {

std::vector<Pair> PairsOf(const std::vector<int32_t>& forward,
                          const std::vector<int32_t>& backward) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i < std::max(forward.size(), backward.size()); ++i) {
    Pair pair;
    if (i < forward.size()) pair.forward = forward[i];
    if (i < backward.size()) pair.backward = backward[backward.size() - 1 - i];
    pairs.push_back(pair);
  }
  return pairs;
}

std::vector<Sides> InterleavedSteps(int32_t ranks, int32_t rank, int32_t chunks,
                                    int32_t microbatches) {
  std::vector<int32_t> forward, backward;
  for (int32_t first = 0; first < microbatches; first += ranks) {
    for (int32_t c = 0; c < chunks; ++c) {
      for (int32_t m = first; m < std::min(first + ranks, microbatches); ++m) {
        forward.push_back(m * chunks + c);
        backward.push_back(m * chunks + chunks - 1 - c);
      }
    }
  }
  const int32_t until_first_gradient = 2 * (ranks - rank - 1) + (chunks - 1) * ranks;
  const size_t warmup = std::min(forward.size(), static_cast<size_t>(until_first_gradient) + 1);
  std::vector<Sides> steps;
  for (size_t k = 0; k < warmup; ++k) steps.push_back({forward[k], -1});
  for (size_t k = 0; k < backward.size(); ++k)
    steps.push_back({k + warmup < forward.size() ? forward[k + warmup] : -1, backward[k]});
  return steps;
}

namespace {

class Order {
 public:
  explicit Order(const Plan& plan) : plan_(plan) {}

  std::vector<Key> Run() {
    for (const Sides& sides : plan_.steps) Combined(sides.forward, sides.backward);
    if (!plan_.steps.empty()) return std::move(out_);
    const auto n = static_cast<int32_t>(plan_.layers.size());
    for (int32_t k = 0; k <= n; ++k) {
      if (!plan_.train || !plan_.overlap) {
        Combined(k < n ? k : -1, -1);
        if (plan_.train && k < n) Combined(-1, k);
      } else {
        Combined(k < n ? k : -1, k - 1);
      }
    }
    return std::move(out_);
  }

 private:
  void Add(ScheduleNode node, Side side, int32_t layer, int32_t microbatch) {
    if (microbatch < 0) return;
    const Key key{node, side, layer, microbatch};
    if (plan_.has(key)) out_.push_back(key);
  }

  // Forward of microbatch f beside backward of microbatch b; -1: without that side.
  void Combined(int32_t f, int32_t b) {
    Add(ScheduleNode::kLoss, Side::kBackward, -1, b);
    Add(ScheduleNode::kPre, Side::kForward, -1, f);
    Add(ScheduleNode::kPost, Side::kBackward, -1, b);
    const std::vector<int32_t> none;
    const auto& forward = f < 0 ? none : At(plan_.layers, f);
    const auto& backward = b < 0 ? none : At(plan_.layers, b);
    const std::vector<Pair> pairs = PairsOf(forward, backward);
    for (const Pair& pair : pairs) {
      const bool last = !backward.empty() && pair.backward == backward.front();
      Layers(pair.forward < 0 ? -1 : f, pair.forward, pair.backward < 0 ? -1 : b, pair.backward,
             last);
    }
    if (!backward.empty()) Add(ScheduleNode::kPreDispatch, Side::kWeights, backward.front(), b);
    Add(ScheduleNode::kPost, Side::kForward, -1, f);
    Add(ScheduleNode::kPre, Side::kBackward, -1, b);
    Add(ScheduleNode::kLoss, Side::kForward, -1, f);
  }

  // One pair. Weight gradients of the first layer's attention wait until the layers are through.
  void Layers(int32_t f, int32_t i, int32_t b, int32_t j, bool last) {
    const auto forward = [&](ScheduleNode node) { Add(node, Side::kForward, i, f); };
    const auto backward = [&](ScheduleNode node, Side side = Side::kBackward) {
      Add(node, side, j, b);
    };
    backward(ScheduleNode::kMtpPost);
    backward(ScheduleNode::kCombine);
    forward(ScheduleNode::kPreDispatch);
    backward(ScheduleNode::kMlp);
    forward(ScheduleNode::kDispatch);
    backward(ScheduleNode::kMlp, Side::kWeights);
    backward(ScheduleNode::kDispatch);
    if (plan_.early_release) backward(ScheduleNode::kPreDispatch);
    forward(ScheduleNode::kMlp);
    forward(ScheduleNode::kCombine);
    if (!plan_.early_release) backward(ScheduleNode::kPreDispatch);
    forward(ScheduleNode::kMtpPost);
    if (!last) backward(ScheduleNode::kPreDispatch, Side::kWeights);
  }

  const Plan& plan_;
  std::vector<Key> out_;
};

// Which parameter groups are gathered while the order is walked.
class Sharding {
 public:
  Sharding(const Plan& plan, const ShardingPlan& sharding) : plan_(plan), sharding_(sharding) {}

  std::vector<std::string> Run() {
    for (const Key& key : ExpectedOrder(plan_)) {
      // A backward side begins: all layers will be needed again.
      if (key.node == ScheduleNode::kLoss && key.side == Side::kBackward) {
        for (const int32_t layer : At(plan_.layers, key.microbatch)) to_come_.insert(layer);
      }
      for (const std::string& group : sharding_.reads(key)) Need(group);
      out_.push_back(Text(key));
      if (sharding_.shards_params && key.layer >= 0) After(key);
    }
    return std::move(out_);
  }

 private:
  static bool OfLayer(const std::string& group, int32_t layer) {
    return group.substr(1) == std::to_string(layer);
  }

  void Need(const std::string& group) {
    if (group[0] != 'N') marked_.erase(std::stoi(group.substr(1)));
    if (!gathered_.insert(group).second) return;
    const std::set<int32_t> marked = std::move(marked_);
    marked_.clear();
    for (const int32_t layer : marked) Release(layer);
    out_.push_back("AG " + group);
  }
  void Release(int32_t layer) {
    const size_t before = gathered_.size();
    std::erase_if(gathered_, [&](const std::string& group) {
      return group[0] != 'N' && OfLayer(group, layer);
    });
    if (gathered_.size() != before) out_.push_back("REL U" + std::to_string(layer));
  }

  void After(const Key& key) {
    const ScheduleNode last_forward =
        sharding_.moe(key.layer) ? ScheduleNode::kCombine : ScheduleNode::kMlp;
    const Side last_backward = sharding_.delay ? Side::kWeights : Side::kBackward;
    if (key.side == Side::kForward && key.node == last_forward) {
      if (to_come_.count(key.layer) != 0) {
        marked_.insert(key.layer);
      } else {
        Release(key.layer);
      }
    }
    if (key.side == last_backward && key.node == ScheduleNode::kPreDispatch) {
      to_come_.erase(key.layer);
      marked_.erase(key.layer);
      Release(key.layer);
    }
  }

  const Plan& plan_;
  const ShardingPlan& sharding_;
  std::set<std::string> gathered_;
  std::set<int32_t> marked_, to_come_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<Key> ExpectedOrder(const Plan& plan) { return Order(plan).Run(); }

std::vector<std::string> ExpectedTable(const Plan& plan, const ShardingPlan& sharding) {
  return Sharding(plan, sharding).Run();
}

}  // namespace shardproof::schedule
