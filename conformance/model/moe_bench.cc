#include "conformance/model/moe_bench.h"

#include <cmath>

#include "conformance/abi/shardproof.h"
#include "conformance/model/grids.h"

namespace shardproof {
namespace {

// rows[src][dst] * width numbers go from src to dst.
using Counts = std::vector<std::vector<int64_t>>;

std::vector<Floats> Exchange(const std::vector<Floats>& in, const Counts& rows, int64_t width) {
  std::vector<Floats> out(in.size());
  for (size_t src = 0; src < in.size(); ++src) {
    const float* from = in[src].data();
    for (size_t dst = 0; dst < out.size(); ++dst) {
      const float* to = from + rows[src][dst] * width;
      out[dst].insert(out[dst].end(), from, to);
      from = to;
    }
  }
  return out;
}

Counts Transposed(const Counts& rows) {
  Counts swapped = rows;
  for (size_t a = 0; a < rows.size(); ++a)
    for (size_t b = 0; b < rows.size(); ++b) swapped[a][b] = rows[b][a];
  return swapped;
}

Floats Zeros(int64_t n) { return Floats(static_cast<size_t>(n)); }

// One microbatch on every rank.
class Group {
 public:
  Group(const Numerics& n, const MoeLayer& layer, int64_t ranks)
      : n_(n),
        l_(layer),
        r_(layer.rule),
        ranks_(static_cast<size_t>(ranks)),
        local_(static_cast<size_t>(r_.experts / ranks)) {}

  void Run(const std::vector<MoeSample>& samples, const size_t* ids, MoeResult& result) {
    Route(samples, ids, result);
    dispatched_ = Exchange(permuted_, send_, r_.width);
    probs_ = Exchange(row_probs_, send_, 1);
    for (size_t rank = 0; rank < ranks_; ++rank) Experts(rank);
    const std::vector<Floats> combined = Exchange(expert_out_, Transposed(send_), r_.width);
    std::vector<Floats> drows(ranks_);
    for (size_t rank = 0; rank < ranks_; ++rank) {
      const size_t id = ids[rank];
      const MoeSample& s = samples[id];
      result.out[id] = Zeros(r_.tokens * r_.width);
      result.dshared[id] = result.dresidual[id] = result.out[id];
      drows[rank] = Zeros(Rows(rank) * r_.width);
      UnpermuteForward(n_, r_, Rows(rank), combined[rank].data(), result.index[id].data(),
                       s.shared.data(), s.residual.data(), result.out[id].data());
      UnpermuteDgrad(n_, r_, Rows(rank), result.index[id].data(), s.dout.data(), drows[rank].data(),
                     result.dshared[id].data(), result.dresidual[id].data(), false);
    }
    Backward(samples, ids, Exchange(drows, send_, r_.width), result);
  }

 private:
  int64_t Rows(size_t rank) const { return static_cast<int64_t>(row_probs_[rank].size()); }
  ExpertRows Received(size_t rank) const {
    return {static_cast<int64_t>(ranks_), static_cast<int64_t>(local_),
            r_.pad ? nullptr : received_[rank].data(), r_.rows_per_expert()};
  }

  void Route(const std::vector<MoeSample>& samples, const size_t* ids, MoeResult& result) {
    for (auto* v : {&permuted_, &row_probs_, &h_, &act_, &expert_out_}) v->assign(ranks_, {});
    send_.assign(ranks_, std::vector<int64_t>(ranks_));
    received_.assign(ranks_, {});
    for (size_t rank = 0; rank < ranks_; ++rank) {
      const size_t id = ids[rank];
      const float* x = samples[id].x.data();
      std::vector<int64_t> counts(static_cast<size_t>(r_.experts));
      result.probs[id] = Zeros(r_.tokens * r_.top_k);
      result.index[id].resize(result.probs[id].size());
      RouterForward(n_, r_, x, l_.router.data(), l_.router_bias(), result.probs[id].data(),
                    result.index[id].data(), counts.data());
      int64_t rows = 0;
      for (size_t e = 0; e < counts.size(); ++e) {
        send_[rank][e / local_] += counts[e];
        received_[e / local_].push_back(counts[e]);
        rows += counts[e];
      }
      permuted_[rank] = Zeros(rows * r_.width);
      row_probs_[rank] = Zeros(rows);
      PermuteForward(r_, rows, x, result.probs[id].data(), result.index[id].data(),
                     permuted_[rank].data(), row_probs_[rank].data());
    }
  }

  // This rank's experts' share of a list by expert.
  std::vector<const float*> Local(const std::vector<Floats>& all, size_t rank) const {
    std::vector<const float*> mine;
    for (size_t e = 0; e < local_ && !all.empty(); ++e)
      mine.push_back(all[rank * local_ + e].data());
    return mine;
  }
  std::vector<GradTarget> Targets(std::vector<Floats>& all, size_t rank, const char* name) const {
    std::vector<GradTarget> mine;
    for (size_t e = 0; e < local_ && !all.empty(); ++e)
      mine.push_back({name, all[rank * local_ + e].data(), SPF_F32});
    return mine;
  }

  void Experts(size_t rank) {
    const ExpertRows rows = Received(rank);
    const int64_t count = rows.total();
    h_[rank] = Zeros(count * 2 * l_.ffn);
    act_[rank] = Zeros(count * l_.ffn);
    expert_out_[rank] = Zeros(count * r_.width);
    GroupedForward(n_, rows, r_.width, 2 * l_.ffn, dispatched_[rank].data(), Local(l_.fc1, rank),
                   Local(l_.fc1_bias, rank), grids::kActivation, h_[rank].data());
    GatedSwigluForward(n_, count, l_.ffn, h_[rank].data(), probs_[rank].data(), act_[rank].data());
    GroupedForward(n_, rows, l_.ffn, r_.width, act_[rank].data(), Local(l_.fc2, rank),
                   Local(l_.fc2_bias, rank), grids::kActivation, expert_out_[rank].data());
  }

  void Backward(const std::vector<MoeSample>& samples, const size_t* ids,
                const std::vector<Floats>& dout, MoeResult& result) {
    std::vector<Floats> drows(ranks_), dprobs(ranks_);
    for (size_t rank = 0; rank < ranks_; ++rank) {
      const ExpertRows rows = Received(rank);
      const int64_t count = rows.total();
      Floats dact = Zeros(count * l_.ffn), dh = Zeros(count * 2 * l_.ffn);
      drows[rank] = Zeros(count * r_.width);
      dprobs[rank] = Zeros(count);
      GroupedDgrad(n_, rows, l_.ffn, r_.width, dout[rank].data(), grids::kDBranch,
                   Local(l_.fc2, rank), grids::kDExpertAct, dact.data());
      GatedSwigluDgrad(n_, count, l_.ffn, h_[rank].data(), probs_[rank].data(), dact.data(),
                       dh.data(), dprobs[rank].data());
      GroupedDgrad(n_, rows, r_.width, 2 * l_.ffn, dh.data(), grids::kDExpertFc1,
                   Local(l_.fc1, rank), grids::kDDispatched, drows[rank].data());
      GroupedWgrad(n_, rows, l_.ffn, r_.width, act_[rank].data(), dout[rank].data(),
                   grids::kDBranch, Targets(result.fc2, rank, "fc2"),
                   Targets(result.fc2_bias, rank, "fc2.bias"));
      GroupedWgrad(n_, rows, r_.width, 2 * l_.ffn, dispatched_[rank].data(), dh.data(),
                   grids::kDExpertFc1, Targets(result.fc1, rank, "fc1"),
                   Targets(result.fc1_bias, rank, "fc1.bias"));
    }
    drows = Exchange(drows, Transposed(send_), r_.width);
    dprobs = Exchange(dprobs, Transposed(send_), 1);
    for (size_t rank = 0; rank < ranks_; ++rank) {
      const size_t id = ids[rank];
      const float *x = samples[id].x.data(), *w = l_.router.data(), *b = l_.router_bias();
      const int32_t* index = result.index[id].data();
      result.dx[id] = Zeros(r_.tokens * r_.width);
      result.dprobs[id] = Zeros(r_.tokens * r_.top_k);
      PermuteDgrad(n_, r_, Rows(rank), index, drows[rank].data(), dprobs[rank].data(),
                   result.dx[id].data(), result.dprobs[id].data());
      const double scale = std::ldexp(1.0, n_.scale_e);
      RouterDgrad(n_, r_, x, w, b, index, result.dprobs[id].data(), scale, result.dx[id].data());
      RouterWgrad(n_, r_, x, w, b, index, result.dprobs[id].data(), scale,
                  {"router", result.router.data(), SPF_F32});
    }
  }

  const Numerics& n_;
  const MoeLayer& l_;
  const RouterRule& r_;
  size_t ranks_, local_;
  Counts send_;                                 // [src][dst]
  std::vector<std::vector<int64_t>> received_;  // by rank: [src, local expert]
  std::vector<Floats> permuted_, row_probs_, dispatched_, probs_, h_, act_, expert_out_;
};

}  // namespace

Floats OnGrid(std::mt19937& random, int64_t n, Grid grid) {
  std::uniform_int_distribution<int32_t> quanta(-grid.q, grid.q);
  Floats values(static_cast<size_t>(n));
  for (float& value : values) value = static_cast<float>(quanta(random)) * PowerOfTwo(grid.e);
  return values;
}

Floats Normal(std::mt19937& random, int64_t n) {
  std::normal_distribution<float> normal;
  Floats values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

RouterRule SmallRule(Score score, int64_t k) {
  RouterRule rule;
  rule.tokens = 8;
  rule.width = 16;
  rule.experts = 8;
  rule.top_k = k;
  rule.score = score;
  return rule;
}

RouterCase::RouterCase(const RouterRule& r) : rule(r) {
  x = OnGrid(random, r.tokens * r.width, {grids::kActivation.e, 60});
  weight = OnGrid(random, r.experts * r.width, {grids::kWeight.e, 40});
  if (r.score == Score::kSigmoid) bias = OnGrid(random, r.experts, {grids::kWeight.e, 40});
  dprobs = OnGrid(random, r.tokens * r.top_k, {grids::kDRowProbability.e, 60});
}

float RouterCase::Logit(int64_t token, int64_t expert) const {
  float sum = 0;
  for (int64_t i = rule.width; i-- > 0;)
    sum = sum + x[static_cast<size_t>(token * rule.width + i)] *
                    weight[static_cast<size_t>(expert * rule.width + i)];
  return sum;
}

Routed Route(const Numerics& n, const RouterRule& rule, const Floats& x, const Floats& weight,
             const Floats& bias) {
  const auto choices = static_cast<size_t>(rule.tokens * rule.top_k);
  Routed r{Floats(choices), Indices(choices),
           std::vector<int64_t>(static_cast<size_t>(rule.experts))};
  RouterForward(n, rule, x.data(), weight.data(), bias.empty() ? nullptr : bias.data(),
                r.probs.data(), r.index.data(), r.counts.data());
  return r;
}

RouterGrads RouterBackward(const Numerics& n, const RouterRule& rule, const RouterCase& c,
                           const Indices& index, const Floats& dprobs, double aux_scale) {
  RouterGrads g{Floats(c.x.size()), Floats(c.weight.size())};
  const float* bias = c.bias.empty() ? nullptr : c.bias.data();
  RouterDgrad(n, rule, c.x.data(), c.weight.data(), bias, index.data(), dprobs.data(), aux_scale,
              g.dx.data());
  RouterWgrad(n, rule, c.x.data(), c.weight.data(), bias, index.data(), dprobs.data(), aux_scale,
              {"router", g.dweight.data(), SPF_F32});
  return g;
}

MoeLayer RandomLayer(const RouterRule& rule, int64_t ffn, bool biases, std::mt19937& random) {
  MoeLayer layer{rule, ffn, biases, {}, {}, {}, {}, {}, {}};
  const Grid weight{grids::kWeight.e, 63};
  layer.router = OnGrid(random, rule.experts * rule.width, weight);
  if (rule.score == Score::kSigmoid) layer.bias = OnGrid(random, rule.experts, weight);
  for (int64_t e = 0; e < rule.experts; ++e) {
    layer.fc1.push_back(OnGrid(random, 2 * ffn * rule.width, weight));
    layer.fc2.push_back(OnGrid(random, ffn * rule.width, weight));
    if (!biases) continue;
    layer.fc1_bias.push_back(OnGrid(random, 2 * ffn, weight));
    layer.fc2_bias.push_back(OnGrid(random, rule.width, weight));
  }
  return layer;
}

MoeSample RandomSample(const RouterRule& rule, std::mt19937& random) {
  const int64_t count = rule.tokens * rule.width;
  return {OnGrid(random, count, {grids::kActivation.e, 60}),
          OnGrid(random, count, {grids::kActivation.e, 40}),
          OnGrid(random, count, {grids::kResidual.e, 200}),
          OnGrid(random, count, {grids::kDResidual.e, 60})};
}

MoeResult RunMoe(const Numerics& n, const MoeLayer& layer, const std::vector<MoeSample>& samples,
                 const std::vector<size_t>& order, int64_t ranks) {
  MoeResult result;
  for (auto* v :
       {&result.probs, &result.out, &result.dprobs, &result.dx, &result.dshared, &result.dresidual})
    v->resize(samples.size());
  result.index.resize(samples.size());
  result.router.resize(layer.router.size());
  auto zeros = [](const std::vector<Floats>& like) {
    std::vector<Floats> grads;
    for (const Floats& param : like) grads.emplace_back(param.size());
    return grads;
  };
  result.fc1 = zeros(layer.fc1);
  result.fc2 = zeros(layer.fc2);
  result.fc1_bias = zeros(layer.fc1_bias);
  result.fc2_bias = zeros(layer.fc2_bias);
  for (size_t first = 0; first < order.size(); first += static_cast<size_t>(ranks))
    Group(n, layer, ranks).Run(samples, &order[first], result);
  return result;
}

}  // namespace shardproof
