// wrong_values.h: what do values that are not as expected have in common?
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "conformance/checks/base/published.h"

namespace shardproof {

// value as an engine has it that keeps dtype (spf_dtype).
double CastTo(float value, int32_t dtype);

// The factor by which every published element differs from what is expected, if there is one such
// number.
std::optional<double> CommonFactor(const Assembled& seen, const std::vector<float>& expected);

// How many elements are NaN where a number is expected, in words; empty: none.
std::string NotNumbers(const Assembled& seen, const std::vector<float>& expected);

// With as many digits as tell it: "0.5", "0.333333333".
std::string FactorText(double factor);

// How a number relates to the one that is expected: "it is 2 times what is expected", "it is NaN";
// empty: nothing to say.
std::string Relation(double seen, double expected);

}  // namespace shardproof
