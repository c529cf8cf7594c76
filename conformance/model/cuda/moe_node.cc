#include "conformance/model/cuda/moe_node.h"

#include <stdexcept>

#include "conformance/model/cuda/moe_grouped.h"
#include "conformance/model/cuda/moe_permute.h"
#include "conformance/model/cuda/moe_router.h"
#include "conformance/model/moe_rules.h"

namespace shardproof::device {
namespace {

int64_t Rows(const NodeContext& c, int32_t value) { return RowsOf(c.network, c.args, value); }

// Parameters of one shape as nodes use them, one after the other; null if there are none.
class Params {
 public:
  Params(const NodeContext& c, const std::vector<int32_t>& ids)
      : numel_(ids.empty() || ids[0] < 0 ? 0 : c.Numel(ids[0])),
        memory_(c.queue, numel_ * static_cast<int64_t>(ids.size())) {
    for (size_t i = 0; i < ids.size() && numel_ > 0; ++i)
      WidenParam(c, ids[i], memory_.get() + static_cast<int64_t>(i) * numel_);
  }
  const float* get() const { return memory_.get(); }

 private:
  int64_t numel_;
  Scratch<float> memory_;
};

std::vector<GradTarget> Targets(const NodeContext& c, bool wanted,
                                const std::vector<int32_t>& ids) {
  std::vector<GradTarget> targets;
  for (int32_t id : ids) {
    if (wanted && id >= 0) targets.push_back(c.Target(id));
  }
  return targets;
}

// Of the experts of one ep rank after the other: how many rows. Sums of poison wrap.
void SumPerRank(const NodeContext& c, const int64_t* expert_counts, int64_t* rank_counts) {
  const int64_t local = MoeSizesOf(c.config).local;
  ForEach(c.queue, "sum_per_rank", c.config.ep, [=] SHARDPROOF_KERNEL(int64_t rank) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < local; ++i)
      sum += static_cast<uint64_t>(expert_counts[rank * local + i]);
    rank_counts[rank] = static_cast<int64_t>(sum);
  });
}

RowsByExpert Received(const NodeContext& c) {
  const MoeSizes sizes = MoeSizesOf(c.config);
  const int64_t* counts = c.spec.in[1] < 0 ? nullptr : c.Counts(c.spec.in[1]);
  return {c.queue,
          {c.config.ep, sizes.local, counts, counts == nullptr ? sizes.capacity : 0},
          Rows(c, c.spec.in[0])};
}

GroupedShape ShapeOf(const NodeContext& c) {
  return {c.Width(c.spec.in[0]), c.Width(c.spec.out[0])};
}

void RouterNode(const NodeContext& c, spf_phase phase) {
  const auto &in = c.spec.in, &out = c.spec.out;
  const RouterRule rule = RouterRuleOf(c.config);
  const Param weight(c, c.spec.weight()), bias(c, c.spec.bias());
  const RouterOperands operands{c.In(in[0]), weight.get(), bias.get()};
  int32_t* index = c.Integers(out[1]);
  if (phase == SPF_FWD) {
    int64_t* counts = out[2] < 0 ? nullptr : c.Counts(out[2]);
    RouterForward(c.queue, c.rules, rule, operands, c.Out(out[0]), index, counts);
    if (counts != nullptr) SumPerRank(c, counts, c.Counts(out[3]));
  } else if (phase == SPF_DGRAD) {
    RouterDgrad(c.queue, c.rules, rule, operands, index, c.Grad(out[0]), c.args.aux_scale,
                c.Grad(in[0]));
  } else {
    RouterWgrad(c.queue, c.rules, rule, operands, index, c.Grad(out[0]), c.args.aux_scale,
                c.Target(c.spec.weight()));
  }
}

void GroupedNode(const NodeContext& c, spf_phase phase) {
  const int32_t in = c.spec.in[0], out = c.spec.out[0];
  const RowsByExpert rows = Received(c);
  const GroupedGrids on = GroupedGridsOf(c.spec);
  if (phase == SPF_WGRAD) {
    return GroupedWgrad(c.queue, c.rules, rows, ShapeOf(c), c.In(in), c.Grad(out), on.out,
                        Targets(c, c.spec.grad_weight, c.spec.weights),
                        Targets(c, c.spec.grad_bias, c.spec.biases));
  }
  const Params weights(c, c.spec.weights);
  if (phase == SPF_DGRAD)
    return GroupedDgrad(c.queue, c.rules, rows, ShapeOf(c), c.Grad(out), weights.get(), on.in,
                        c.Grad(in));
  const Params biases(c, c.spec.biases);
  GroupedForward(c.queue, c.rules, rows, ShapeOf(c), c.In(in), weights.get(), biases.get(),
                 grids::kActivation, c.Out(out));
}

}  // namespace

void RunMoeForward(const NodeContext& c) {
  const auto &in = c.spec.in, &out = c.spec.out;
  switch (c.spec.op) {
    case Op::kRouter:
      return RouterNode(c, SPF_FWD);
    case Op::kPermute:
      return PermuteForward(c.queue, RouterRuleOf(c.config), Rows(c, out[0]), c.In(in[0]),
                            c.In(in[1]), c.Integers(in[2]), c.Out(out[0]), c.Out(out[1]));
    case Op::kSplits:
      return SumPerRank(c, c.Counts(in[0]), c.Counts(out[0]));
    case Op::kGroupedLinear:
      return GroupedNode(c, SPF_FWD);
    case Op::kGatedSwiglu:
      return GatedSwigluForward(c.queue, c.rules, Rows(c, in[0]), c.d.ffn, c.In(in[0]), c.In(in[1]),
                                c.Out(out[0]));
    case Op::kUnpermute:
      return UnpermuteForward(c.queue, c.rules, RouterRuleOf(c.config), Rows(c, in[0]), c.In(in[0]),
                              c.Integers(in[1]), in[2] < 0 ? nullptr : c.In(in[2]), c.In(in[3]),
                              c.Out(out[0]));
    case Op::kExchange:
      throw std::logic_error(c.spec.name + " is an exchange: the engine moves it");
    default:
      throw std::logic_error(c.spec.name + ": no forward pass");
  }
}

void RunMoeDgrad(const NodeContext& c) {
  const auto &in = c.spec.in, &out = c.spec.out;
  switch (c.spec.op) {
    case Op::kRouter:
      return RouterNode(c, SPF_DGRAD);
    case Op::kPermute:
      return PermuteDgrad(c.queue, RouterRuleOf(c.config), Rows(c, out[0]), c.Integers(in[2]),
                          c.Grad(out[0]), c.Grad(out[1]), c.Grad(in[0]), c.Grad(in[1]));
    case Op::kGroupedLinear:
      return GroupedNode(c, SPF_DGRAD);
    case Op::kGatedSwiglu:
      return GatedSwigluDgrad(c.queue, c.rules, Rows(c, in[0]), c.d.ffn, c.In(in[0]), c.In(in[1]),
                              c.Grad(out[0]), c.Grad(in[0]), c.Grad(in[1]));
    case Op::kUnpermute:
      return UnpermuteDgrad(
          c.queue, c.rules, RouterRuleOf(c.config), Rows(c, in[0]), c.Integers(in[1]),
          c.Grad(out[0]),
          {c.Grad(in[0]), in[2] < 0 ? nullptr : c.Grad(in[2]), c.Grad(in[3]), c.spec.add_in[3]});
    default:
      throw std::logic_error(c.spec.name + ": no input gradient");
  }
}

void RunMoeWgrad(const NodeContext& c) {
  if (c.spec.op == Op::kGroupedLinear) return GroupedNode(c, SPF_WGRAD);
  if (c.spec.op != Op::kRouter) throw std::logic_error(c.spec.name + ": no parameter gradient");
  RouterNode(c, SPF_WGRAD);
}

}  // namespace shardproof::device
