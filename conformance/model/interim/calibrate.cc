// Calibration: one forward and backward of the full program at the initial weights.
#include <cmath>

#include "conformance/model/interim/data.h"
#include "conformance/model/interim/node_math.h"

namespace shardproof {

namespace {
struct Sum {
  double squares = 0;
  int64_t n = 0;
  void Add(const float* x, int64_t count) {
    for (int64_t i = 0; i < count; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    n += count;
  }
  Grid Fit(double factor, float limit) const { return {FitExponent(squares, n, factor, limit), limit}; }
};
}  // namespace

Site NodeMath::Fit(const NodeArgs& args) {
  args_ = &args;
  Site site;
  if (def_.op == Op::kInput || def_.op == Op::kLoss || def_.op == Op::kSilu) return site;
  const int64_t t = dims_.sequence, n = def_.n;
  Sum up;
  up.Add(Dact(def_.out), t * n);
  site.upstream = def_.op == Op::kHead ? kLogitGrad : up.Fit(4, 127);
  site.passed = up.Fit(16, 1023);
  // A tied weight adds two gradients: keep their grids together.
  if (def_.op == Op::kEmbed && config_.tied) {
    const int32_t head = kActivation.exponent + kLogitGrad.exponent + (config_.narrow ? 6 : 0);
    if (site.upstream.exponent < head || config_.narrow) site.upstream.exponent = head;
  }
  site_ = site;
  if (def_.op == Op::kNorm) {
    const Floats dy = Upstream(site.upstream, t * n), w = Param(def_.weight, kNormWeight);
    Sum dot, out;
    for (int64_t i = 0; i < t * n; ++i) {
      const float g = dy[static_cast<size_t>(i)] * w[static_cast<size_t>(i % n)];
      dot.Add(&g, 1);
    }
    site.dot = dot.Fit(4, 127);
    Floats dx(dy.size());
    rmsnorm_dgrad(dx.data(), dy.data(), Act(def_.in), w.data(), t, n, site.dot, q_);
    out.Add(dx.data(), t * n);
    site.passed = out.Fit(16, 1023);
  }
  if (def_.op == Op::kAttention) {
    const Floats dy = Upstream(site.upstream, t * n);
    Floats dx(static_cast<size_t>(t * 3 * n));
    SquareSum prob, score, unused;
    attention_dgrad(dx.data(), dy.data(), Act(def_.in), t, n, dims_.heads, {}, {false}, &prob, &unused);
    site.dprob = {FitExponent(prob.sum, prob.n, 4, 127), 127};
    attention_dgrad(dx.data(), dy.data(), Act(def_.in), t, n, dims_.heads, {site.dprob, {}}, {false}, nullptr, &score);
    site.dscore = {FitExponent(score.sum, score.n, 4, 127), 127};
  }
  return site;
}

std::vector<Site> Calibrate(const ModelConfig& config, const TableSet& tables) {
  std::vector<Site> sites(static_cast<size_t>(tables.sites()));
  if (!config.quantised) return sites;
  const Dims dims = DimsOf(config);
  const spf_model& model = tables.model();
  ModelConfig plain = config;  // the same network, read from fp32 parameters
  plain.bf16_params = false;
  std::vector<std::vector<float>> params, acts, dacts;
  std::vector<const void*> param;
  std::vector<void*> act, dact, grad(static_cast<size_t>(model.n_params));
  for (int32_t p = 0; p < model.n_params; ++p) {
    auto& values = params.emplace_back(static_cast<size_t>(model.params[p].numel));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = InitialElement(config.seed, tables.params()[static_cast<size_t>(p)], static_cast<int64_t>(i));
    }
  }
  for (int32_t v = 0; v < model.n_values; ++v) {
    const auto n = static_cast<size_t>(model.values[v].max_rows * model.values[v].row_elems);
    acts.emplace_back(n);
    dacts.emplace_back(n);
  }
  for (auto& x : params) param.push_back(x.data());
  for (auto& x : acts) act.push_back(x.data());
  for (auto& x : dacts) dact.push_back(x.data());
  NodeArgs args;
  args.param = param.data();
  args.grad = grad.data();
  args.act = act.data();
  args.dact = dact.data();
  const spf_program& program = tables.program(false);
  const auto each = [&](int32_t i, int32_t phase, bool fit) {
    args.node = program.nodes[i].id;
    args.phase = phase;
    const NodeDef& def = tables.defs()[static_cast<size_t>(args.node)];
    Site& site = sites[static_cast<size_t>(def.site)];
    if (fit) site = NodeMath(plain, dims, tables, def, site).Fit(args);
    NodeMath(plain, dims, tables, def, site).Run(args);
  };
  for (int32_t i = 0; i < program.n_nodes; ++i) each(i, SPF_FWD, false);
  for (int32_t i = program.n_nodes - 1; i >= 0; --i) each(i, SPF_DGRAD, true);
  return sites;
}

}  // namespace shardproof
