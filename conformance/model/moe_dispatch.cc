// dispatch.h: nodes of routed experts and of multi-token prediction.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "conformance/model/dispatch.h"
#include "conformance/model/grids.h"
#include "conformance/model/linear.h"

namespace shardproof {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<const float*> Pointers(const std::vector<std::vector<float>>& params) {
  std::vector<const float*> pointers;
  for (const std::vector<float>& param : params) pointers.push_back(param.data());
  return pointers;
}

}  // namespace

std::vector<std::vector<float>> Dispatch::Params(const std::vector<int32_t>& ids) const {
  std::vector<std::vector<float>> params;
  for (int32_t id : ids) {
    if (id >= 0) params.push_back(Param(id));
  }
  return params;
}

std::vector<GradTarget> Dispatch::Targets(bool wanted, const std::vector<int32_t>& ids) const {
  std::vector<GradTarget> targets;
  for (int32_t id : ids) {
    if (wanted && id >= 0) targets.push_back(Target(id));
  }
  return targets;
}

void Dispatch::RouterFwd() {
  const std::vector<float> weight = Param(spec_.weight()), bias = Param(spec_.bias());
  std::vector<int64_t> counts(static_cast<size_t>(config_.moe.experts));
  RouterForward(n_, Rule(), In(spec_.in[0]), weight.data(), bias.empty() ? nullptr : bias.data(),
                Out(spec_.out[0]), static_cast<int32_t*>(args_.act[spec_.out[1]]), counts.data());
  if (spec_.out[2] < 0) return;
  std::copy(counts.begin(), counts.end(), Counts(spec_.out[2]));
  SumPerRank(counts.data(), Counts(spec_.out[3]));
}

void Dispatch::SumPerRank(const int64_t* expert_counts, int64_t* rank_counts) const {
  const int64_t local = MoeSizesOf(config_).local;
  for (int64_t rank = 0; rank < config_.ep; ++rank) {
    uint64_t sum = 0;  // poison may overflow
    for (int64_t i = 0; i < local; ++i)
      sum += static_cast<uint64_t>(expert_counts[rank * local + i]);
    rank_counts[rank] = static_cast<int64_t>(sum);
  }
}

ExpertRows Dispatch::Received() const {
  const MoeSizes sizes = MoeSizesOf(config_);
  const int64_t* counts = spec_.in[1] < 0 ? nullptr : Counts(spec_.in[1]);
  return {config_.ep, sizes.local, counts,
          counts == nullptr ? sizes.capacity * config_.moe.parts : 0};
}

void Dispatch::GroupedFwd() {
  const int64_t rows = Rows(spec_.in[0]), in = Width(spec_.in[0]), out = Width(spec_.out[0]);
  const ExpertRows received = Received();
  float* y = Out(spec_.out[0]);
  if (!received.Fits(rows)) return void(std::fill_n(y, rows * out, kNaN));
  const auto weights = Params(spec_.weights), biases = Params(spec_.biases);
  GroupedForward(n_, received, in, out, In(spec_.in[0]), Pointers(weights), Pointers(biases),
                 grids::kActivation, y);
}

void Dispatch::GroupedDgradNode() {
  const int64_t rows = Rows(spec_.in[0]), in = Width(spec_.in[0]), out = Width(spec_.out[0]);
  const ExpertRows received = Received();
  float* dx = Grad(spec_.in[0]);
  if (!received.Fits(rows)) return void(std::fill_n(dx, rows * in, kNaN));
  const auto weights = Params(spec_.weights);
  const GroupedGrids on = GroupedGridsOf(spec_);
  GroupedDgrad(n_, received, in, out, Grad(spec_.out[0]), on.out, Pointers(weights), on.in, dx);
}

void Dispatch::GroupedWgradNode() {
  const int64_t rows = Rows(spec_.in[0]), in = Width(spec_.in[0]), out = Width(spec_.out[0]);
  const ExpertRows received = Received();
  const auto weights = Targets(spec_.grad_weight, spec_.weights);
  const auto biases = Targets(spec_.grad_bias, spec_.biases);
  if (received.Fits(rows)) {
    return GroupedWgrad(n_, received, in, out, In(spec_.in[0]), Grad(spec_.out[0]),
                        GroupedGridsOf(spec_).out, weights, biases);
  }
  auto poison = [&](const std::vector<GradTarget>& targets, int64_t numel) {
    const auto n = static_cast<size_t>(numel);
    for (const GradTarget& target : targets)
      n_.AddGrad(target, std::vector<float>(n, kNaN), 0, std::vector<double>(n));
  };
  poison(weights, in * out);
  poison(biases, out);
}

// [tokens, 2 width]: left and right input side by side.
std::vector<float> Dispatch::Concatenated() const {
  const int64_t width = d_.width;
  std::vector<float> both(static_cast<size_t>(d_.sequence * 2 * width));
  for (int64_t t = 0; t < d_.sequence; ++t) {
    std::copy_n(In(spec_.in[0]) + t * width, width, &both[static_cast<size_t>(t * 2 * width)]);
    std::copy_n(In(spec_.in[1]) + t * width, width,
                &both[static_cast<size_t>((t * 2 + 1) * width)]);
  }
  return both;
}

void Dispatch::ConcatDgrad() {
  const int64_t width = d_.width;
  std::vector<float> dboth(static_cast<size_t>(d_.sequence * 2 * width));
  LinearDgrad(n_, {d_.sequence, 2 * width, width}, OutGrad().data(), OutGradGrid(),
              Param(spec_.weight()).data(), grids::kDNormOut, dboth.data());
  for (int64_t t = 0; t < d_.sequence; ++t) {
    for (size_t side = 0; side < 2; ++side) {
      if (!spec_.grad_in[side]) continue;
      const auto from = static_cast<size_t>((t * 2 + static_cast<int64_t>(side)) * width);
      std::copy_n(&dboth[from], width, Grad(spec_.in[side]) + t * width);
    }
  }
}

void Dispatch::MoeForward() {
  const int32_t *in = spec_.in.data(), *out = spec_.out.data();
  switch (spec_.op) {
    case Op::kRouter:
      return RouterFwd();
    case Op::kPermute:
      return PermuteForward(Rule(), Rows(out[0]), In(in[0]), In(in[1]), Integers(in[2]),
                            Out(out[0]), Out(out[1]));
    case Op::kSplits:
      return SumPerRank(Counts(in[0]), Counts(out[0]));
    case Op::kGroupedLinear:
      return GroupedFwd();
    case Op::kGatedSwiglu:
      return GatedSwigluForward(n_, Rows(in[0]), d_.ffn, In(in[0]), In(in[1]), Out(out[0]));
    case Op::kUnpermute:
      return UnpermuteForward(n_, Rule(), Rows(in[0]), In(in[0]), Integers(in[1]),
                              in[2] < 0 ? nullptr : In(in[2]), In(in[3]), Out(out[0]));
    case Op::kExchange:
      throw std::logic_error(spec_.name + " is an exchange: the engine moves it");
    default:
      throw std::logic_error(spec_.name + ": no forward pass");
  }
}

void Dispatch::MoeDgrad() {
  const int32_t *in = spec_.in.data(), *out = spec_.out.data();
  switch (spec_.op) {
    case Op::kRouter: {
      const std::vector<float> weight = Param(spec_.weight()), bias = Param(spec_.bias());
      return RouterDgrad(n_, Rule(), In(in[0]), weight.data(), bias.empty() ? nullptr : bias.data(),
                         Integers(out[1]), Grad(out[0]), args_.aux_scale, Grad(in[0]));
    }
    case Op::kPermute:
      return PermuteDgrad(n_, Rule(), Rows(out[0]), Integers(in[2]), Grad(out[0]), Grad(out[1]),
                          Grad(in[0]), Grad(in[1]));
    case Op::kGroupedLinear:
      return GroupedDgradNode();
    case Op::kGatedSwiglu:
      return GatedSwigluDgrad(n_, Rows(in[0]), d_.ffn, In(in[0]), In(in[1]), Grad(out[0]),
                              Grad(in[0]), Grad(in[1]));
    case Op::kUnpermute:
      return UnpermuteDgrad(n_, Rule(), Rows(in[0]), Integers(in[1]), Grad(out[0]), Grad(in[0]),
                            in[2] < 0 ? nullptr : Grad(in[2]), Grad(in[3]), spec_.add_in[3]);
    default:
      throw std::logic_error(spec_.name + ": no input gradient");
  }
}

void Dispatch::MoeWgrad() {
  if (spec_.op == Op::kGroupedLinear) return GroupedWgradNode();
  if (spec_.op != Op::kRouter) throw std::logic_error(spec_.name + ": no parameter gradient");
  const std::vector<float> weight = Param(spec_.weight()), bias = Param(spec_.bias());
  RouterWgrad(n_, Rule(), In(spec_.in[0]), weight.data(), bias.empty() ? nullptr : bias.data(),
              Integers(spec_.out[1]), Grad(spec_.out[0]), args_.aux_scale, Target(spec_.weight()));
}

}  // namespace shardproof
