#include "conformance/model/moe_rules.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "conformance/model/grids.h"

namespace shardproof {
namespace {

constexpr float kSkew = 1024;  // decides every choice, and is exact beside any key

std::vector<float> Selection(const MoeConfig& moe) {
  if (moe.skew.empty()) return {};
  std::vector<float> selection(static_cast<size_t>(moe.experts));
  const auto experts = selection.size();
  if (moe.skew == "one") std::fill_n(selection.begin(), moe.top_k, kSkew);
  if (moe.skew == "empty") selection[experts - 1] = -kSkew;
  for (size_t e = experts / 2; moe.skew == "rank" && e < experts; ++e) selection[e] = -kSkew;
  return selection;
}

}  // namespace

RouterRule RouterRuleOf(const ModelConfig& config) {
  const MoeConfig& moe = config.moe;
  const Dims dims = DimsOf(config);
  RouterRule rule;
  const MoeSizes sizes = MoeSizesOf(config);
  rule.tokens = sizes.tokens;
  rule.parts = moe.parts;
  rule.width = dims.width;
  rule.experts = moe.experts;
  rule.top_k = moe.top_k;
  rule.score = moe.score == "sigmoid"      ? Score::kSigmoid
               : moe.score == "presoftmax" ? Score::kPreSoftmax
                                           : Score::kSoftmax;
  rule.groups = moe.groups;
  rule.top_groups = moe.top_groups;
  rule.z_loss = moe.z_loss;
  rule.aux_loss = moe.aux_loss;
  rule.capacity = sizes.capacity;
  rule.pad = moe.pad;
  rule.selection = Selection(moe);
  return rule;
}

GroupedGrids GroupedGridsOf(const NodeSpec& spec) {
  const bool fc1 = spec.name.find(".fc1") != std::string::npos;
  if (fc1) return {grids::kDExpertFc1, grids::kDDispatched};
  return {grids::kDBranch, grids::kDExpertAct};
}

int64_t RowsOf(const Network& network, const NodeArgs& args, int32_t value) {
  const spf_value& v = network.tables().values[value];
  if ((v.flags & SPF_VALUE_DYNAMIC) == 0) return v.max_rows;
  const int64_t rows = args.rows == nullptr ? -1 : args.rows[value];
  if (rows >= 0 && rows <= v.max_rows) return rows;
  throw std::invalid_argument(std::string("rows of ") + v.name + " = " + std::to_string(rows) +
                              ": use 0 to " + std::to_string(v.max_rows));
}

}  // namespace shardproof
