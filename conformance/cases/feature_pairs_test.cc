// Are every two features that the reference has together in a case of core on sim? The covering
// arrays combine the values of one space each (profiles.h); what no space has together is in
// CrossCases.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/cases_for_test.h"
#include "conformance/cases/profiles.h"

namespace shardproof {
namespace {

using Tokens = std::vector<std::string>;

struct Feature {
  const char* name;
  const char* tokens;   // of an id that has it, but for world, strategy and microbatches
  const char* pattern;  // of the token that shows it
};

constexpr Feature kFeatures[] = {
    {"avg", "avg", "avg"},
    {"pertoken", "pertoken", "pertoken"},
    {"overlapped reductions", "ogr", "ogr"},
    {"overlapped gathers", "opg", "opg"},
    {"twin", "twin", "twin.*"},
    {"grid", "grid", "grid"},
    {"outer ranks", "n2", "n\\d+"},
    {"hfsdp", "n2.hfsdp", "hfsdp"},
    {"bf16", "bf16", "bf16"},
    {"acc16", "bf16.acc16", "acc16"},
    {"wire16", "wire16", "wire16"},
    {"ub", "ub", "ub"},
    {"copies", "copies", "copies"},
    {"double buffers", "doublebuffer", "doublebuffer"},
    {"reshard0", "reshard0", "reshard0"},
    {"reshard to a part", "reshard2", "reshard[2-9]"},
    {"meta", "meta", "meta"},
    {"norm", "norm", "norm"},
    {"clip", "clip0p5", "clip.+"},
    {"zeros", "zeros", "zeros"},
    {"skip", "skip16", "skip.+"},
    {"nan", "nan", "nan"},
    {"loss scale", "ls3", "ls\\d+"},
    {"weight decay", "wd0p0625", "wd.+"},
    {"adamw", "adamw", "adamw"},
    {"muon", "muon", "muon"},
    {"epsilon of muon", "muon.nseps0p5", "nseps.+"},
    {"parts of the loss", "loss2", "loss\\d+"},
    {"recompute", "recompute", "recompute"},
    {"recomputed modules", "recompute=core_attn", "recompute=.+"},
    {"tied", "tied", "tied"},
    {"bias", "bias", "bias"},
    {"root", "root", "root"},
    {"odd sizes", "odd", "odd"},
    {"reused", "reused", "reused"},
    {"frozen", "frozen=norms", "frozen=.+"},
    {"unused", "unused=rank", "unused=.+"},
    {"save", "do=tsrlt", "do=.*s.*"},
    {"evaluation", "do=tett", "do=.*e.*"},
    {"one communicator", "onecomm", "onecomm"},
    {"one queue", "onequeue", "onequeue"},
    {"nothing ahead", "pf0", "pf0"},
    {"no units", "units=none", "units=none"},
    {"bucket size", "bs300", "bs\\d+"},
    {"stages", "pp2.k4.layers4", "pp\\d+"},
    {"interleaved stages", "pp2.k4.layers4.vpp2", "vpp\\d+"},
    {"split over tp", "tp2.split", "split"},
    {"sp", "tp2.split.sp", "sp"},
    {"splitvocab", "tp2.split.splitvocab", "splitvocab"},
    {"ctx", "cp2.ctx", "ctx"},
    {"routed experts", "ep2.moe4", "moe\\d+"},
    {"1f1b", "ep2.moe4.1f1b", "1f1b"},
    {"mtp", "ep2.moe4.mtp", "mtp"},
    {"z loss", "ep2.moe4.zloss", "zloss"},
    {"capacity", "ep2.moe4.cap125", "cap\\d+"},
    {"shared expert", "ep2.moe4.shared", "shared"},
    {"auxiliary loss", "ep2.moe4.aux", "aux"},
    {"top1", "ep2.moe4.top1", "top1"},
    {"sigmoid", "ep2.moe4.sigmoid", "sigmoid"},
};

// Legal, and the reference declines it: it steps whole matrices, and recomputes no stages.
bool ReferenceDeclines(const Tokens& tokens) {
  const auto any = [&](const char* token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
  };
  return (any("muon") && !any("ddp")) || (any("recompute") && any("vpp2"));
}

Tokens Split(const std::string& id) {
  Tokens tokens{""};
  for (const char letter : id) {
    if (letter == '.')
      tokens.emplace_back();
    else
      tokens.back() += letter;
  }
  return tokens;
}

std::set<size_t> FeaturesOf(const std::string& id) {
  static const std::vector<std::regex> patterns = [] {
    std::vector<std::regex> all;
    for (const Feature& feature : kFeatures) all.emplace_back(feature.pattern);
    return all;
  }();
  std::set<size_t> features;
  for (const std::string& token : Split(id)) {
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (std::regex_match(token, patterns[i])) features.insert(i);
    }
  }
  return features;
}

using Pair = std::pair<size_t, size_t>;

std::set<Pair> PairsOf(const std::vector<Case>& cases) {
  std::set<Pair> pairs;
  for (const Case& c : cases) {
    if (!c.illegal.empty() || c.instances.size() > 1 || !c.before.empty()) continue;
    const std::set<size_t> features = FeaturesOf(Id(c));
    for (const size_t a : features) {
      for (const size_t b : features) pairs.emplace(a, b);
    }
  }
  return pairs;
}

// Of tokens that both have, once; scripts of both become one.
std::string Rest(const Feature& a, const Feature& b) {
  Tokens tokens = Split(a.tokens);
  for (const std::string& token : Split(b.tokens)) {
    const auto script = std::find_if(tokens.begin(), tokens.end(),
                                     [](const auto& one) { return one.starts_with("do="); });
    if (token.starts_with("do=") && script != tokens.end())
      *script = "do=tsrlet";
    else if (std::find(tokens.begin(), tokens.end(), token) == tokens.end())
      tokens.push_back(token);
  }
  if (std::find(tokens.begin(), tokens.end(), "k4") == tokens.end()) tokens.emplace_back("k2");
  std::string rest;
  for (const std::string& token : tokens) rest += "." + token;
  return rest;
}

// A case with both that engines may be asked; none if there is none.
std::optional<std::string> Witness(const Pair& pair) {
  const std::string rest = Rest(kFeatures[pair.first], kFeatures[pair.second]);
  for (const char* begin : {"w4.zero3", "w4.zero2", "w4.zero1", "w4.ddp", "w8.zero3", "w8.ddp"}) {
    if (ReferenceDeclines(Split(begin + rest))) continue;
    try {
      const Case c = ParseId(begin + rest);
      const std::set<size_t> features = FeaturesOf(Id(c));
      if (c.illegal.empty() && features.contains(pair.first) && features.contains(pair.second))
        return Id(c);
    } catch (const std::invalid_argument&) {  // such an id cannot be asked
    }
  }
  return std::nullopt;
}

TEST(FeaturePairs, AreInCasesOfCore) {
  Spaces spaces;
  const std::set<Pair> there = PairsOf(Profile("core", "sim", spaces));
  std::string missing;
  size_t asked = 0;
  for (size_t a = 0; a < std::size(kFeatures); ++a) {
    for (size_t b = a + 1; b < std::size(kFeatures); ++b) {
      if (there.contains({a, b})) {
        ++asked;
        continue;
      }
      const auto witness = Witness({a, b});
      if (witness)
        missing +=
            std::string("\n  ") + kFeatures[a].name + " and " + kFeatures[b].name + ": " + *witness;
    }
  }
  EXPECT_EQ(missing, "") << "give CrossCases a case with them";
  EXPECT_GE(asked, 1400u);
}

TEST(FeaturePairs, AFeatureHasItsToken) {
  for (size_t i = 0; i < std::size(kFeatures); ++i) {
    const auto witness = Witness({i, i});
    ASSERT_TRUE(witness) << kFeatures[i].name;
  }
}

}  // namespace
}  // namespace shardproof
