#include "property_tests/schedule_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/common/at.h"

namespace shardproof {

using schedule::Key;
using schedule::ScheduleNode;
using schedule::Side;
using schedule::Text;

std::ostream& operator<<(std::ostream& out, const OrderShape& shape) {
  for (const auto& layers : shape.microbatches) {
    for (const OrderLayer& layer : layers) out << (layer.moe ? 'E' : 'd') << (layer.mtp ? "+" : "");
    out << ' ';
  }
  return out << (shape.delay ? "delay " : "") << (shape.early ? "early" : "");
}

bool Has(const OrderShape& shape, const Key& key) {
  const auto& layers = At(shape.microbatches, key.microbatch);
  if (key.layer < 0) return key.side != Side::kWeights;
  const OrderLayer& layer = At(layers, key.layer);
  if (key.side == Side::kWeights)
    return shape.delay &&
           (key.node == ScheduleNode::kPreDispatch || key.node == ScheduleNode::kMlp);
  if (key.node == ScheduleNode::kDispatch || key.node == ScheduleNode::kCombine) return layer.moe;
  return key.node != ScheduleNode::kMtpPost || layer.mtp;
}

std::vector<Key> AllKeys(const OrderShape& shape) {
  std::vector<Key> keys;
  for (size_t m = 0; m < shape.microbatches.size(); ++m) {
    const auto microbatch = static_cast<int32_t>(m);
    for (const Side side : {Side::kForward, Side::kBackward, Side::kWeights}) {
      for (const ScheduleNode node : {ScheduleNode::kPre, ScheduleNode::kPost, ScheduleNode::kLoss})
        keys.push_back({node, side, -1, microbatch});
      for (size_t layer = 0; layer < shape.microbatches[m].size(); ++layer) {
        for (const ScheduleNode node : kLayerNodes)
          keys.push_back({node, side, static_cast<int32_t>(layer), microbatch});
      }
    }
  }
  std::erase_if(keys, [&](const Key& key) { return !Has(shape, key); });
  return keys;
}

namespace {

// Its place among the nodes of a pair of layers.
int NumberInPair(const OrderShape& shape, const Key& key) {
  const bool forward = key.side == Side::kForward;
  switch (key.node) {
    case ScheduleNode::kMtpPost:
      return forward ? 11 : 1;
    case ScheduleNode::kCombine:
      return forward ? 9 : 2;
    case ScheduleNode::kMlp:
      return forward ? 8 : key.side == Side::kBackward ? 4 : 6;
    case ScheduleNode::kDispatch:
      return forward ? 5 : 7;
    default:
      break;
  }
  if (forward) return 3;
  if (key.side == Side::kWeights) return 12;
  return shape.early ? 7 : 10;
}

}  // namespace

OrderPosition PositionOf(const OrderShape& shape, const Key& key) {
  const int32_t layers = Length(At(shape.microbatches, key.microbatch));
  const bool forward = key.side == Side::kForward;
  const int step = key.microbatch + (forward ? 0 : 1);
  switch (key.node) {
    case ScheduleNode::kLoss:
      return {step, forward ? 7 : 0, 0, 0};
    case ScheduleNode::kPre:
      return {step, forward ? 1 : 6, 0, 0};
    case ScheduleNode::kPost:
      return {step, forward ? 5 : 2, 0, 0};
    default:
      break;
  }
  // Of the first layer they come behind all pairs.
  if (key.side == Side::kWeights && key.node == ScheduleNode::kPreDispatch && key.layer == 0)
    return {step, 4, 0, 0};
  const int pair = forward ? key.layer : layers - 1 - key.layer;
  const int number = NumberInPair(shape, key);
  // Right behind the dispatch.
  const int tie = number == 7 && key.node == ScheduleNode::kPreDispatch ? 1 : 0;
  return {step, 3, pair, 2 * number + tie};
}

namespace {

// What a microbatch has done so far, counted along its chain: forward up, backward down.
class Microbatches {
 public:
  explicit Microbatches(const OrderShape& shape)
      : shape_(shape), done_(shape.microbatches.size()) {}

  // Empty, or what is wrong with issuing this node now.
  std::string Take(const Key& key) {
    const auto m = static_cast<size_t>(key.microbatch);
    std::set<Key>& done = done_[m];
    if (!done.insert(key).second) return Text(key) + " comes twice";
    if (key.side == Side::kWeights) {
      return done.count({key.node, Side::kBackward, key.layer, key.microbatch})
                 ? ""
                 : Text(key) + " before its backward";
    }
    const std::vector<Key> chain = Chain(key.microbatch);
    size_t& next = next_[key.microbatch];
    if (next >= chain.size() || chain[next] != key)
      return Text(key) + " instead of " + Text(chain[std::min(next, chain.size() - 1)]);
    ++next;
    if (key == chain.back()) return "";
    // Whoever is on its way: begun, and its backward not over.
    int in_flight = 0;
    for (const auto& [other, position] : next_)
      in_flight += position > 0 && position < Chain(other).size() ? 1 : 0;
    return in_flight > 2 ? Text(key) + " with three microbatches in flight" : "";
  }

  std::string Finish() const {
    size_t taken = 0;
    for (const auto& done : done_) taken += done.size();
    return taken == AllKeys(shape_).size() ? "" : "some nodes are missing";
  }

 private:
  // Forward, then the same way back.
  std::vector<Key> Chain(int32_t microbatch) const {
    std::vector<Key> chain{{ScheduleNode::kPre, Side::kForward, -1, microbatch}};
    const auto layers = At(shape_.microbatches, microbatch).size();
    for (size_t layer = 0; layer < layers; ++layer) {
      for (const ScheduleNode node : kLayerNodes)
        chain.push_back({node, Side::kForward, static_cast<int32_t>(layer), microbatch});
    }
    chain.push_back({ScheduleNode::kPost, Side::kForward, -1, microbatch});
    chain.push_back({ScheduleNode::kLoss, Side::kForward, -1, microbatch});
    for (size_t i = chain.size(); i-- > 0;) {
      Key back = chain[i];
      back.side = Side::kBackward;
      chain.push_back(back);
    }
    std::erase_if(chain, [&](const Key& key) { return !Has(shape_, key); });
    return chain;
  }

  const OrderShape& shape_;
  std::vector<std::set<Key>> done_;
  std::map<int32_t, size_t> next_;  // by microbatch: position in its chain
};

// Compute of the other side lies between the start of an exchange and what needs it: the last of
// these pairs of rules is what early release changes.
std::string WithinPairs(const OrderShape& shape, const std::vector<Key>& order) {
  std::map<Key, size_t> at;
  for (size_t i = 0; i < order.size(); ++i) at[order[i]] = i;
  const auto before = [&](const Key& a, const Key& b) {
    return !at.count(a) || !at.count(b) || at[a] < at[b];
  };
  for (int32_t m = 0; m + 1 < static_cast<int32_t>(shape.microbatches.size()); ++m) {
    const int32_t f = m + 1;
    const auto backward_layers = static_cast<int32_t>(At(shape.microbatches, m).size());
    const auto forward_layers = static_cast<int32_t>(At(shape.microbatches, f).size());
    for (int32_t i = 0; i < std::min(forward_layers, backward_layers); ++i) {
      const int32_t j = backward_layers - 1 - i;
      const auto F = [&](ScheduleNode node) { return Key{node, Side::kForward, i, f}; };
      const auto B = [&](ScheduleNode node) { return Key{node, Side::kBackward, j, m}; };
      const Key pre_dispatch = B(ScheduleNode::kPreDispatch), combine = F(ScheduleNode::kCombine);
      const bool hidden = before(B(ScheduleNode::kCombine), F(ScheduleNode::kPreDispatch)) &&
                          before(F(ScheduleNode::kPreDispatch), B(ScheduleNode::kMlp)) &&
                          before(B(ScheduleNode::kMlp), F(ScheduleNode::kDispatch)) &&
                          before(B(ScheduleNode::kDispatch), F(ScheduleNode::kMlp)) &&
                          (shape.early ? before(pre_dispatch, F(ScheduleNode::kMlp))
                                       : before(combine, pre_dispatch)) &&
                          before(pre_dispatch, F(ScheduleNode::kMtpPost));
      if (!hidden)
        return "pair " + std::to_string(i) + " of microbatches " + std::to_string(m) + ", " +
               std::to_string(f);
    }
  }
  return "";
}

}  // namespace

std::string OrderComplaint(const OrderShape& shape, const std::vector<Key>& order) {
  Microbatches state(shape);
  for (const Key& key : order) {
    const std::string wrong = state.Take(key);
    if (!wrong.empty()) return wrong;
  }
  const std::string missing = state.Finish();
  return missing.empty() ? WithinPairs(shape, order) : missing;
}

}  // namespace shardproof
