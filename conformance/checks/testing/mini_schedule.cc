#include "conformance/checks/testing/mini_schedule.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/nodes.h"
#include "conformance/checks/testing/mini_memory.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

using schedule::Key;
using schedule::Nodes;
using schedule::ScheduleNode;
using schedule::Side;

class Engine {
 public:
  Engine(const Case& c, const InstanceFacts& facts, int32_t rank, const ScheduleFaults& faults)
      : facts_(facts),
        spec_(facts.spec()),
        rank_(rank),
        f_(faults.rank < 0 || faults.rank == rank ? faults : ScheduleFaults{}),
        m_(c, facts, rank, f_) {}

  Trace Run() {
    for (const ScriptCall& call : facts_.calls()) {
      if (call.letter == 'c') m_.Create();
      if (call.letter == 't' || call.letter == 'e') Step(call.step, call.letter == 't');
    }
    m_.Destroy();
    return m_.t.Done();
  }

 private:
  void Step(int64_t step, bool train) {
    nodes_.clear();
    m_.BeginStep(step, train);
    for (int32_t m = 0; m < spec_.microbatches; ++m) {
      nodes_.push_back(std::make_unique<Nodes>(m_.tables(), m_.Program(m)));
    }
    if (f_.gather_all) {
      for (const int32_t unit : facts_.units(rank_)) m_.Gather(unit, false), m_.Gather(unit, true);
    }
    const int32_t n = spec_.microbatches;
    for (int32_t k = 0; k <= n; ++k) {
      const int32_t f = k < n ? k : -1, b = train ? k - 1 : -1;
      if (f_.early_optimizer && k == n && train) m_.Optimizer();
      if (f_.one_after_the_other) {
        Combined(f, -1);
        if (b >= 0) Combined(-1, b);
      } else if (f >= 0 || b >= 0) {
        Combined(f, b);
      }
    }
    m_.EndStep();
  }

  static int32_t Bottom(const Nodes& nodes) { return nodes.layers().front(); }

  void Combined(int32_t f, int32_t b) {
    if (f_.forward_first) RunNode(ScheduleNode::kPre, Side::kForward, -1, f);
    if (b >= 0) {
      m_.Root(SPF_HOOK_ROOT_PRE_BACKWARD, b);
      for (const int32_t layer : At(nodes_, b)->layers()) to_come_.insert(layer);
    }
    RunNode(ScheduleNode::kLoss, Side::kBackward, -1, b);
    if (!f_.forward_first) RunNode(ScheduleNode::kPre, Side::kForward, -1, f);
    RunNode(ScheduleNode::kPost, Side::kBackward, -1, b);
    std::vector<int32_t> forward, backward;
    if (f >= 0) forward = At(nodes_, f)->layers();
    if (b >= 0) backward = At(nodes_, b)->layers();
    std::reverse(backward.begin(), backward.end());
    const size_t shift = f_.shifted_pairs && !forward.empty() && !backward.empty() ? 1 : 0;
    const size_t rounds = std::max(forward.size(), backward.size() + shift);
    for (size_t i = 0; i < rounds; ++i) {
      const bool has_f = i < forward.size(), has_b = i >= shift && i - shift < backward.size();
      Pair(has_f ? f : -1, has_f ? forward[i] : -1, has_b ? b : -1,
           has_b ? backward[i - shift] : -1);
    }
    if (!backward.empty()) Weights(ScheduleNode::kPreDispatch, backward.back(), b);
    RunNode(ScheduleNode::kPost, Side::kForward, -1, f);
    RunNode(ScheduleNode::kPre, Side::kBackward, -1, b);
    RunNode(ScheduleNode::kLoss, Side::kForward, -1, f);
    if (b >= 0) {
      m_.FinishMicrobatch(b);
      m_.Root(SPF_HOOK_ROOT_POST_BACKWARD, b);
    }
    if (f_.regather_outside) m_.Release(-1);
    for (const int32_t unit : late_) m_.Release(unit);
    late_ = std::move(later_);
    later_.clear();
  }

  void Pair(int32_t f, int32_t i, int32_t b, int32_t j) {
    const bool last = b >= 0 && j == Bottom(*At(nodes_, b));
    RunNode(ScheduleNode::kMtpPost, Side::kBackward, j, b);
    RunNode(ScheduleNode::kCombine, Side::kBackward, j, b);
    if (f_.experts_first) RunNode(ScheduleNode::kMlp, Side::kBackward, j, b);
    RunNode(ScheduleNode::kPreDispatch, Side::kForward, i, f);
    const bool in_place = !f_.experts_before_dispatch_swapped && !f_.experts_first;
    if (in_place) RunNode(ScheduleNode::kMlp, Side::kBackward, j, b);
    RunNode(ScheduleNode::kDispatch, Side::kForward, i, f);
    if (f_.experts_before_dispatch_swapped) RunNode(ScheduleNode::kMlp, Side::kBackward, j, b);
    Weights(ScheduleNode::kMlp, j, b);
    RunNode(ScheduleNode::kDispatch, Side::kBackward, j, b);
    if (spec_.early_release) RunNode(ScheduleNode::kPreDispatch, Side::kBackward, j, b);
    RunNode(ScheduleNode::kMlp, Side::kForward, i, f);
    if (f >= 0 && f_.release_on_mlp) ReleaseForward(i, f);
    RunNode(ScheduleNode::kCombine, Side::kForward, i, f);
    if (f >= 0 && !f_.release_on_mlp) ReleaseForward(i, f);
    if (!spec_.early_release) RunNode(ScheduleNode::kPreDispatch, Side::kBackward, j, b);
    RunNode(ScheduleNode::kMtpPost, Side::kForward, i, f);
    if (!last) Weights(ScheduleNode::kPreDispatch, j, b);
  }

  bool Apart() const { return spec_.delay_wgrad || f_.weights_apart; }
  int32_t UnitOf(int32_t layer, int32_t m) const {
    return facts_.UnitOfModule(At(nodes_, m)->Of(ScheduleNode::kMlp, layer).front()->module, rank_);
  }
  bool IsKept(int32_t layer, int32_t m) const {
    return f_.keep_top_layer && layer == At(nodes_, m)->layers().back();
  }
  void ReleaseForward(int32_t layer, int32_t m) {
    if (!ShardsParams(spec_) || f_.forget_release || IsKept(layer, m)) return;
    if (to_come_.count(layer) != 0 && !f_.eager_release) return m_.MarkReleasable(UnitOf(layer, m));
    m_.Release(UnitOf(layer, m));
  }
  void ReleaseBackward(int32_t layer, int32_t m) {
    to_come_.erase(layer);
    if (!ShardsParams(spec_) || f_.forget_release || IsKept(layer, m)) return;
    if (f_.release_late) {
      later_.insert(UnitOf(layer, m));
    } else {
      m_.Release(UnitOf(layer, m));
    }
  }

  void Weights(ScheduleNode schedule_node, int32_t layer, int32_t m) {
    if (!Apart() || m < 0) return;
    if (f_.skip_weights && schedule_node == ScheduleNode::kMlp && layer == 0) return;
    RunNode(schedule_node, Side::kWeights, layer, m);
  }

  void RunNode(ScheduleNode schedule_node, Side side, int32_t layer, int32_t m) {
    if (m < 0) return;
    const std::vector<const spf_node*> list = InOrder(schedule_node, side, layer, m);
    if (list.empty()) return;
    m_.Prepare(list, side);
    if (f_.release_before_experts && schedule_node == ScheduleNode::kMlp && side == Side::kForward)
      m_.Release(UnitOf(layer, m), true);
    Issue(list, schedule_node, side, m);
    const Side last = Apart() && !f_.release_before_weights ? Side::kWeights : Side::kBackward;
    if (schedule_node == ScheduleNode::kPreDispatch && side == last) ReleaseBackward(layer, m);
    if (side != Side::kForward) Reductions(schedule_node, side, layer, m);
  }

  std::vector<const spf_node*> InOrder(ScheduleNode schedule_node, Side side, int32_t layer,
                                       int32_t m) const {
    std::vector<const spf_node*> list = At(nodes_, m)->Of(schedule_node, layer);
    if (side != Side::kForward) std::reverse(list.begin(), list.end());
    const bool first_dispatch =
        schedule_node == ScheduleNode::kDispatch && side == Side::kForward && layer == 0;
    if (f_.probs_first && first_dispatch && !list.empty()) std::swap(list[0], list[1]);
    return list;
  }

  // On its stream, in the microbatch's chain.
  void Issue(const std::vector<const spf_node*>& list, ScheduleNode schedule_node, Side side,
             int32_t m) {
    const bool moves =
        schedule_node == ScheduleNode::kDispatch || schedule_node == ScheduleNode::kCombine;
    const int stream =
        moves || (f_.experts_on_a2a && schedule_node == ScheduleNode::kMlp) ? m_.a2a : m_.compute;
    const bool chained = side != Side::kWeights || f_.weights_in_chain;
    if (chained && !(f_.no_wait_before_dispatch && schedule_node == ScheduleNode::kDispatch))
      m_.WaitChain(m, stream);
    for (const spf_node* node : list) Node(*node, schedule_node, side, m, stream);
    if (chained) m_.RecordChain(m, stream);
    if (f_.serial && moves) m_.WaitChain(m, m_.compute);
  }

  void Node(const spf_node& node, ScheduleNode schedule_node, Side side, int32_t m, int stream) {
    const bool put_off =
        Apart() &&
        (schedule_node == ScheduleNode::kMlp || schedule_node == ScheduleNode::kPreDispatch) &&
        At(nodes_, m)->Deferrable(node.id);
    if (node.kind == SPF_NODE_EXCHANGE) {
      if (side != Side::kWeights) m_.Exchange(node, side == Side::kBackward, m, stream);
      return;
    }
    if (side == Side::kWeights && !put_off) return;
    const int backward = put_off ? SPF_DGRAD : SPF_BWD;
    const int phase = side == Side::kForward   ? SPF_FWD
                      : side == Side::kWeights ? SPF_WGRAD
                                               : backward;
    m_.Compute(node, phase, m, stream);
  }

  // A unit's experts when their weight gradients are through, the rest with the attention's; what
  // is outside units when the embedding is.
  void Reductions(ScheduleNode schedule_node, Side side, int32_t layer, int32_t m) {
    const Side last = Apart() && !f_.reduce_before_weights ? Side::kWeights : Side::kBackward;
    if (layer >= 0 && side == last && schedule_node == ScheduleNode::kMlp)
      m_.Reduce(UnitOf(layer, m), true, m);
    if (layer >= 0 && side == last && schedule_node == ScheduleNode::kPreDispatch)
      m_.Reduce(UnitOf(layer, m), false, m);
    if (schedule_node == ScheduleNode::kPre && side == Side::kBackward) m_.Reduce(-1, false, m);
  }

  const InstanceFacts& facts_;
  const InstanceSpec& spec_;
  const int32_t rank_;
  const ScheduleFaults f_;
  MiniMemory m_;
  std::vector<std::unique_ptr<Nodes>> nodes_;
  std::set<int32_t> to_come_, late_, later_;
};

}  // namespace

Case ScheduleCase(int32_t world, int32_t ep, const std::function<void(InstanceSpec&)>& edit) {
  Case c;
  c.world = world;
  InstanceSpec& spec = c.instances[0];
  spec.ep = ep;
  spec.strategy = ShardingStrategy::kOptimGradsParams;
  spec.script = "tt";
  spec.prefetch_limit_bytes = 0;
  spec.microbatches = 2;
  spec.overlap_moe = true;
  spec.model.layers = 2;
  spec.model.moe.experts = 2 * ep;
  if (edit) edit(spec);
  Derive(c);
  return c;
}

ScheduleRun RunSchedule(Case c, const ScheduleFaults& faults) {
  return WriteRun(std::move(c), [&](const Case& of, const InstanceFacts& facts, int32_t rank) {
    return WriteScheduleTrace(of, facts, rank, faults);
  });
}

Trace WriteScheduleTrace(const Case& c, const InstanceFacts& facts, int32_t rank,
                         const ScheduleFaults& faults) {
  return Engine(c, facts, rank, faults).Run();
}

}  // namespace shardproof
