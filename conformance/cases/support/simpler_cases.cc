#include "conformance/cases/support/simpler_cases.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace shardproof {
namespace {

constexpr std::string_view kScript = "do=";

// What may stand for a token of an id; an empty text: the token is left out.
std::vector<std::string> SimplerTokens(const std::string& token) {
  int32_t world = 0;
  const char* const end = token.data() + token.size();
  if (token.starts_with('w') && std::from_chars(token.data() + 1, end, world).ptr == end &&
      world > 0) {
    std::vector<std::string> worlds;
    for (int32_t fewer = 1; fewer < world; ++fewer) worlds.push_back("w" + std::to_string(fewer));
    return worlds;
  }
  std::vector<std::string> simpler{""};
  for (size_t i = kScript.size(); token.starts_with(kScript) && i < token.size(); ++i)
    simpler.push_back(token.substr(0, i) + token.substr(i + 1));
  return simpler;
}

// The id with another token from begin to end.
std::string With(const std::string& id, size_t begin, size_t end, const std::string& token) {
  if (!token.empty()) return id.substr(0, begin) + token + id.substr(end);
  const bool first = begin == 0 || id[begin - 1] == '+';
  if (first) return id.substr(0, begin) + id.substr(std::min(end + 1, id.size()));
  return id.substr(0, begin - 1) + id.substr(end);
}

}  // namespace

std::vector<Case> SimplerCases(const Case& c) {
  const std::string id = Id(c);
  std::set<std::string> seen{id};
  std::vector<Case> simpler;
  for (size_t begin = 0; begin < id.size();) {
    const size_t end = std::min(id.find_first_of(".+", begin), id.size());
    for (const std::string& token : SimplerTokens(id.substr(begin, end - begin))) {
      try {
        Case one = ParseId(With(id, begin, end, token));
        if (one.illegal.empty() == c.illegal.empty() && seen.insert(Id(one)).second)
          simpler.push_back(std::move(one));
      } catch (const std::invalid_argument&) {  // it cannot be asked
      }
    }
    begin = end + 1;
  }
  std::stable_sort(simpler.begin(), simpler.end(),
                   [](const Case& a, const Case& b) { return Id(a).size() < Id(b).size(); });
  return simpler;
}

}  // namespace shardproof
