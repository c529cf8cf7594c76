#include "conformance/checks/numerics/factors.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "conformance/checks/numerics/wrong_values.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

constexpr double kClose = 1e-6;  // of the largest
constexpr size_t kManyFactors = 32;

using Row = std::vector<double>;

float Narrow(float value) { return FromBf16(ToBf16(value)); }

// Solves the square system that rows (each with its right side at the end) are. Nothing: it has no
// one solution.
std::optional<Row> Solve(std::vector<Row> rows) {
  const size_t n = rows.size();
  for (size_t column = 0; column < n; ++column) {
    const auto pivot = std::max_element(
        rows.begin() + static_cast<int64_t>(column), rows.end(),
        [&](const Row& a, const Row& b) { return std::abs(a[column]) < std::abs(b[column]); });
    std::swap(rows[column], *pivot);
    const double head = rows[column][column];
    if (!(std::abs(head) > 1e-9)) return std::nullopt;
    for (double& value : rows[column]) value /= head;
    for (size_t other = 0; other < n; ++other) {
      const double times = rows[other][column];
      for (size_t k = 0; other != column && k <= n; ++k) rows[other][k] -= times * rows[column][k];
    }
  }
  Row solution;
  for (const Row& row : rows) solution.push_back(row[n]);
  return solution;
}

// seen = sum of factor * term, by least squares; only if that holds for each element.
std::optional<Row> Fit(const Assembled& seen, const std::vector<Row>& terms) {
  const size_t n = terms.size();
  std::vector<Row> rows(n, Row(n + 1));
  double largest = 0;
  size_t elements = 0;
  for (size_t i = 0; i < seen.values.size(); ++i) {
    if (seen.from[i] == Assembled::kNobody) continue;
    if (!std::isfinite(seen.values[i])) return std::nullopt;
    ++elements;
    largest = std::max(largest, std::abs(seen.values[i]));
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) rows[a][b] += terms[a][i] * terms[b][i];
      rows[a][n] += terms[a][i] * seen.values[i];
    }
  }
  if (elements < 4 * n) return std::nullopt;
  const std::optional<Row> factors = Solve(std::move(rows));
  for (size_t i = 0; factors && i < seen.values.size(); ++i) {
    if (seen.from[i] == Assembled::kNobody) continue;
    double sum = 0;
    for (size_t a = 0; a < n; ++a) sum += (*factors)[a] * terms[a][i];
    if (!(std::abs(sum - seen.values[i]) <= kClose * largest)) return std::nullopt;
  }
  return factors;
}

bool Near(double a, double b) { return std::abs(a - b) <= 1e-5 * std::max(1.0, std::abs(b)); }

bool AllAlike(const Row& factors) {
  return std::all_of(factors.begin(), factors.end(),
                     [&](double factor) { return Near(factor, factors[0]); });
}

std::string Short(double factor) {
  for (const double whole : {std::round(factor)}) {
    if (Near(factor, whole)) return FactorText(whole + 0.0);
  }
  return FactorText(static_cast<double>(static_cast<float>(std::round(factor * 1e6) / 1e6)));
}

// Which terms a sum has: all samples of a microbatch, of a rank, or each alone.
enum class By : uint8_t { kMicrobatch, kRank, kSample };

std::string NameOf(By by, size_t term, int32_t ranks) {
  const auto n = static_cast<size_t>(ranks);
  if (by == By::kMicrobatch) return "microbatch " + std::to_string(term);
  if (by == By::kRank) return "data-parallel rank " + std::to_string(term);
  return "microbatch " + std::to_string(term / n) + " of data-parallel rank " +
         std::to_string(term % n);
}

std::vector<Row> TermsOf(By by, const Samples& samples, int32_t ranks) {
  const auto n = static_cast<size_t>(ranks);
  const size_t terms = by == By::kMicrobatch ? samples.size() / n
                       : by == By::kRank     ? n
                                             : samples.size();
  std::vector<Row> sums(terms, Row(samples[0]->size()));
  for (size_t s = 0; s < samples.size(); ++s) {
    const size_t term = by == By::kMicrobatch ? s / n : by == By::kRank ? s % n : s;
    for (size_t i = 0; i < samples[s]->size(); ++i) sums[term][i] += double{(*samples[s])[i]};
  }
  return sums;
}

// Each microbatch has the factor of the next one times the same number.
bool Geometric(const Row& factors) {
  for (size_t i = 0; i + 2 < factors.size(); ++i) {
    if (!Near(factors[i] * factors[i + 2], factors[i + 1] * factors[i + 1])) return false;
  }
  return std::none_of(factors.begin(), factors.end(), [](double f) { return Near(f, 0); });
}

Factors InWords(By by, const Row& factors, int32_t ranks) {
  Factors result;
  result.whole = std::all_of(factors.begin(), factors.end(), [](double factor) {
    return Near(factor, std::round(factor)) && factor > -0.5;
  });
  result.what = "contributions are in it with different factors:";
  for (size_t i = 0; i < factors.size(); ++i) {
    if (i == 4 && factors.size() > 5) {
      result.what += " and " + std::to_string(factors.size() - i) + " more";
      break;
    }
    result.what += (i == 0 ? " " : ", ") + Short(factors[i]) + " for " + NameOf(by, i, ranks);
  }
  if (by == By::kMicrobatch && !result.whole && Geometric(factors)) {
    result.what += ": a factor of " + Short(factors[0] / factors[1]) +
                   " is applied to the running sum, not to what is added to it";
  }
  return result;
}

}  // namespace

const char* SumText(SumIn how) {
  switch (how) {
    case SumIn::kBf16OnEachRank:
      return "added up in bf16 on each rank";
    case SumIn::kBf16AfterReduction:
      return "reduced one by one and added up in bf16";
    case SumIn::kBf16BeforeReduction:
      return "rounded to bf16 before its reduction";
    default:
      return "rounded to bf16";
  }
}

std::vector<float> SumOfSamples(const Samples& samples, int32_t ranks, SumIn how) {
  const auto n = static_cast<size_t>(ranks);
  std::vector<float> result(samples[0]->size());
  for (size_t i = 0; i < result.size(); ++i) {
    float all = 0;
    for (size_t outer = 0; outer < (how == SumIn::kBf16AfterReduction ? samples.size() / n : n);
         ++outer) {
      float sum = 0;
      if (how == SumIn::kBf16AfterReduction) {
        for (size_t rank = 0; rank < n; ++rank) sum += (*samples[outer * n + rank])[i];
        all = Narrow(all + sum);
        continue;
      }
      for (size_t s = outer; s < samples.size(); s += n) {
        sum += (*samples[s])[i];
        if (how == SumIn::kBf16OnEachRank) sum = Narrow(sum);
      }
      all += how == SumIn::kBf16BeforeReduction ? Narrow(sum) : sum;
    }
    result[i] = how == SumIn::kBf16AtTheEnd ? Narrow(all) : all;
  }
  return result;
}

Factors FindFactors(const Assembled& seen, const Samples& samples, int32_t ranks) {
  if (samples.empty() || samples[0]->size() != seen.values.size()) return {};
  for (const By by : {By::kMicrobatch, By::kRank, By::kSample}) {
    const std::vector<Row> terms = TermsOf(by, samples, ranks);
    if (terms.size() < 2 || terms.size() > kManyFactors) continue;
    const std::optional<Row> factors = Fit(seen, terms);
    if (!factors) continue;
    return AllAlike(*factors) ? Factors{} : InWords(by, *factors, ranks);
  }
  return {};
}

}  // namespace shardproof
