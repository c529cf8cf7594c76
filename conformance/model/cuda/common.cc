#include "conformance/model/cuda/common.h"

#include <stdexcept>

namespace shardproof::device {

NodeContext ContextOf(Queue& queue, const Model& model, const NodeArgs& args, ModelRank rank) {
  if (args.probe != nullptr)
    throw std::logic_error("device kernels have no probe: compute on the host instead");
  const Network& network = model.Graph(rank);
  const ModelConfig& config = model.config();
  const Rules rules{config.quantised, config.narrow, config.d_odd, ExponentOfScale(args.scale)};
  return {queue, config, network, args, network.spec(args.node), network.dims(), rules};
}

void Round(Queue& queue, const Rules& rules, Grid grid, const float* from, float* to, int64_t n) {
  const Rules r = rules;
  ForEach(queue, "round", n,
          [=] SHARDPROOF_KERNEL(int64_t i) { to[i] = r.Rounded(grid, from[i]); });
}

void WidenParam(const NodeContext& c, int32_t id, float* to) {
  const Rules rules = c.rules;
  const Grid grid = c.network.info(id).norm ? grids::kNormWeight : grids::kWeight;
  const int64_t numel = c.Numel(id);
  if (!c.config.bf16_params)
    return Round(c.queue, rules, grid, static_cast<const float*>(c.args.param[id]), to, numel);
  const auto* bits = static_cast<const uint16_t*>(c.args.param[id]);
  ForEach(c.queue, "widen_param", numel,
          [=] SHARDPROOF_KERNEL(int64_t i) { to[i] = rules.Rounded(grid, FromBf16(bits[i])); });
}

Param::Param(const NodeContext& c, int32_t id) {
  if (id < 0) return;
  if (!c.rules.quantised && !c.config.bf16_params) {
    data_ = static_cast<const float*>(c.args.param[id]);
    return;
  }
  copy_.emplace(c.queue, c.Numel(id));
  data_ = copy_->get();
  WidenParam(c, id, copy_->get());
}

OutGrad::OutGrad(const NodeContext& c) : data_(c.Grad(c.spec.grad_out())) {
  if (c.spec.grad_from >= 0) data_ += c.FirstToken() * c.Width(c.spec.out[0]);
  if (!c.rules.quantised || !(FromStream(c.spec) || c.spec.many_readers)) return;
  const int64_t n = c.Tokens() * c.Width(c.spec.out[0]);
  copy_.emplace(c.queue, n);
  Round(c.queue, c.rules, c.rules.Scaled(c.OutGradGrid()), data_, copy_->get(), n);
  data_ = copy_->get();
}

namespace {

void TakeOperands(Queue& queue, const Rules& rules, const float* x, Grid grid, float* to,
                  int64_t n) {
  const Rules r = rules;
  ForEach(queue, "grad_operand", n,
          [=] SHARDPROOF_KERNEL(int64_t i) { to[i] = r.Operand(x[i], grid); });
}

}  // namespace

GradOperand::GradOperand(Queue& queue, const Rules& rules, const float* x, int64_t n, Grid grid)
    : data_(x) {
  if (!rules.ternary()) return;
  copy_.emplace(queue, n);
  TakeOperands(queue, rules, x, grid, copy_->get(), n);
  data_ = copy_->get();
}

void AddGrad(Queue& queue, const Rules& rules, GradTarget grad, const float* sums, int64_t n) {
  const Rules r = rules;
  ForEach(queue, "add_grad", n,
          [=] SHARDPROOF_KERNEL(int64_t i) { AddGradAt(r, grad, i, sums[i]); });
}

}  // namespace shardproof::device
