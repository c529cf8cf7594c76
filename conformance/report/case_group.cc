#include "conformance/report/case_group.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

namespace shardproof {

namespace {

// By how a token begins; what follows is digits or nothing.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kFeatures = {
    {{"moe", "experts"},
     {"1f1b", "1F1B"},
     {"pp", "pipeline"},
     {"muon", "Muon"},
     {"hfsdp", "hybrid"}}};

bool Digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

std::vector<std::string_view> Tokens(std::string_view id) {
  std::vector<std::string_view> tokens;
  for (size_t at = 0; at <= id.size();) {
    const size_t dot = std::min(id.find('.', at), id.size());
    tokens.push_back(id.substr(at, dot - at));
    at = dot + 1;
  }
  return tokens;
}

}  // namespace

std::string CaseGroup(std::string_view id) {
  constexpr std::array<std::string_view, 6> kStrategies = {"ddp",   "zero1", "zero2",
                                                           "zero3", "lw",    "zero0"};
  const std::vector<std::string_view> tokens = Tokens(id);
  const bool ours =
      tokens.size() >= 2 && tokens[0].size() >= 2 && tokens[0][0] == 'w' &&
      Digits(tokens[0].substr(1)) &&
      std::find(kStrategies.begin(), kStrategies.end(), tokens[1]) != kStrategies.end();
  if (!ours) return "recorded";
  std::string group(tokens[1]);
  for (const auto& row : kFeatures) {  // no bindings: clang 14 captures none
    const std::string_view token = row.first;
    const bool has = std::any_of(tokens.begin() + 2, tokens.end(), [&](std::string_view t) {
      return t.starts_with(token) && Digits(t.substr(token.size()));
    });
    if (has) group += " + " + std::string(row.second);
  }
  return group;
}

}  // namespace shardproof
