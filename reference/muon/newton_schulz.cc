#include "reference/muon/newton_schulz.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace reference {
namespace {

struct CoefficientList {
  std::vector<NewtonSchulzStep> steps;
  bool cycle = false;  // else the last one repeats
};

CoefficientList ListOf(Coefficients type) {
  const NewtonSchulzStep simple{3.4445, -4.7750, 2.0315};
  switch (type) {
    case Coefficients::kSimple:
      return {{simple}, true};
    case Coefficients::kQuintic:
      return {{{4.0848, -6.8946, 2.9270},
               {3.9505, -6.3029, 2.6377},
               {3.7418, -5.5913, 2.3037},
               {2.8769, -3.1427, 1.2046},
               {2.8366, -3.0525, 1.2012}},
              true};
    case Coefficients::kPolarExpress:
      return {{{8.2051, -22.9019, 16.4607},
               {4.0664, -2.8612, 0.5184},
               {3.9096, -2.8234, 0.5250},
               {3.2856, -2.4153, 0.4853},
               {2.2779, -1.6198, 0.3985},
               {1.8726, -1.2307, 0.3585},
               {1.8564, -1.2132, 0.3568},
               {1.8750, -1.2500, 0.3750}},
              false};
    case Coefficients::kCans:
      return {{{8.4703, -25.1081, 18.6293},
               {4.1828, -3.1087, 0.5806},
               {3.9619, -2.9541, 0.5630},
               {3.2866, -2.4647, 0.5074},
               {2.2737, -1.6447, 0.4162}},
              false};
    case Coefficients::kDeepSeekV4: {
      CoefficientList list{std::vector<NewtonSchulzStep>(8, simple), false};
      list.steps.resize(10, {2, -1.5, 0.5});
      return list;
    }
    case Coefficients::kCubic5:
      return {{{3.3656576, -3.3420992, 0},
               {2.5744352, -1.4957376, 0},
               {2.5368962, -1.4312570, 0},
               {2.4418906, -1.276404, 0},
               {2.2230472, -0.963065, 0}},
              false};
    case Coefficients::kAol:
      return {{{4.0098, -7.0585, 2.4635},
               {3.4585, -5.5479, 2.5959},
               {2.7573, -3.2939, 1.4254},
               {2.7215, -3.0494, 1.3169}},
              true};
  }
  throw std::logic_error("unknown coefficients");
}

PlannedLaunch Gemm(Operand a, Operand b, Operand out, std::vector<double> sizes, bool ta, bool tb,
                   double alpha, double beta) {
  sizes.insert(sizes.end(), {ta ? 1.0 : 0.0, tb ? 1.0 : 0.0, alpha, beta});
  return {SPF_K_GEMM, {{a}, {b}, {out, beta == 0 ? SPF_WRITE : SPF_ADD}}, std::move(sizes)};
}

PlannedLaunch CopyOf(Operand from, Operand to) {
  return {SPF_K_AXPBY, {{from}, {to, SPF_WRITE}}, {1, 0}};
}

// mixed is a multiple of the Gram matrix or a polynomial in it: symmetric, so it may stand on
// either side.
void AddProduct(NewtonSchulzPlan& plan, bool over_rows, Operand mixed, Operand x, Operand y,
                double alpha, double a) {
  const auto rows = static_cast<double>(plan.rows), cols = static_cast<double>(plan.cols),
             side = static_cast<double>(plan.side);
  plan.iterate.push_back(CopyOf(x, y));
  plan.iterate.push_back(Gemm(over_rows ? x : mixed, over_rows ? mixed : x, y, {rows, cols, side},
                              false, false, alpha, a));
}

// over_rows: rows are contracted, so the Gram matrix is X^T X.
NewtonSchulzPlan Plan(int64_t rows, int64_t cols, bool over_rows, bool partial,
                      const std::vector<NewtonSchulzStep>& steps, double eps, spf_dtype dtype) {
  NewtonSchulzPlan plan;
  plan.rows = rows;
  plan.cols = cols;
  plan.side = over_rows ? cols : rows;
  plan.dtype = dtype;
  plan.squares = {
      SPF_K_SUM_SQUARES, {{Operand::kInput}, {Operand::kSquares, SPF_ADD}}, {}, partial};
  // Without eps, a U of zeros still gives a number, and X = 0.
  plan.norm = {
      SPF_K_NORM_SCALE, {{Operand::kSquares}, {Operand::kInverse, SPF_WRITE}}, {1, eps, 1e15}};
  plan.normalise = {
      SPF_K_AXPBY, {{Operand::kInput}, {Operand::kX, SPF_WRITE}, {Operand::kInverse}}, {1, 0}};
  const auto side = static_cast<double>(plan.side),
             inner = static_cast<double>(over_rows ? rows : cols);
  Operand x = Operand::kX, y = Operand::kY;
  for (const NewtonSchulzStep& step : steps) {
    plan.iterate.push_back(
        Gemm(x, x, Operand::kGram, {side, side, inner}, over_rows, !over_rows, 1, 0));
    plan.iterate.back().partial = partial;
    if (step.c == 0) {
      AddProduct(plan, over_rows, Operand::kGram, x, y, step.b, step.a);
    } else {
      plan.iterate.push_back(CopyOf(Operand::kGram, Operand::kMixed));
      plan.iterate.push_back(Gemm(Operand::kGram, Operand::kGram, Operand::kMixed,
                                  {side, side, side}, false, false, step.c, step.b));
      AddProduct(plan, over_rows, Operand::kMixed, x, y, 1, step.a);
    }
    std::swap(x, y);
  }
  plan.result = x;
  return plan;
}

}  // namespace

std::vector<NewtonSchulzStep> StepsOf(Coefficients type, int32_t steps) {
  const CoefficientList list = ListOf(type);
  std::vector<NewtonSchulzStep> out;
  for (size_t i = 0; i < static_cast<size_t>(std::max(steps, 0)); ++i) {
    const size_t last = list.steps.size() - 1;
    out.push_back(list.steps[list.cycle ? i % (last + 1) : std::min(i, last)]);
  }
  return out;
}

SingularRange RangeOf(const std::vector<NewtonSchulzStep>& steps) {
  constexpr int kSamples = 20000;  // equal ratios from 0.01 to 1
  SingularRange range{std::numeric_limits<double>::infinity(),
                      -std::numeric_limits<double>::infinity()};
  for (int i = 0; i <= kSamples; ++i) {
    double s = std::pow(10.0, -2.0 + 2.0 * i / kSamples);
    for (const NewtonSchulzStep& step : steps) {
      const double s2 = s * s;
      s = s * (step.a + s2 * (step.b + s2 * step.c));
    }
    range.low = std::min(range.low, s);
    range.high = std::max(range.high, s);
  }
  return range;
}

NewtonSchulzPlan PlanNewtonSchulz(int64_t rows, int64_t cols,
                                  const std::vector<NewtonSchulzStep>& steps, double eps,
                                  spf_dtype dtype) {
  return Plan(rows, cols, rows > cols, false, steps, eps, dtype);
}

NewtonSchulzPlan PlanNewtonSchulzOfShard(int64_t rows, int64_t cols, int32_t dim,
                                         const std::vector<NewtonSchulzStep>& steps, double eps,
                                         spf_dtype dtype) {
  return Plan(rows, cols, dim == 0, true, steps, eps, dtype);
}

}  // namespace reference
