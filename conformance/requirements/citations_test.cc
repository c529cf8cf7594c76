// Reads the sources of the checks as data: requirements and checks cite each other.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "conformance/requirements/registry.h"

namespace shardproof {
namespace {

struct Citations {
  std::set<std::string> quoted;     // as a string literal: "FS-01"
  std::set<std::string> mentioned;  // anywhere
};

Citations ReadSources() {
  Citations found;
  const std::regex id("(PG|FS|GE|EP|LW|TP|CP|KN|BU)-[0-9][0-9]");
  for (const auto& entry : std::filesystem::recursive_directory_iterator("conformance/checks")) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".cc") && !path.ends_with(".h")) continue;
    if (path.find("_test.") != std::string::npos) continue;
    if (path.find("/checks/cause/") != std::string::npos) continue;  // it sorts, and judges nothing
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    const std::string source = text.str();
    for (std::sregex_iterator at(source.begin(), source.end(), id), end; at != end; ++at) {
      found.mentioned.insert(at->str());
      const auto before = static_cast<size_t>(at->position());
      const bool is_quoted = before > 0 && source[before - 1] == '"' && source[before + 5] == '"';
      if (is_quoted) found.quoted.insert(at->str());
    }
  }
  return found;
}

TEST(Citations, TheSourcesAreThere) { EXPECT_GT(ReadSources().quoted.size(), 50u); }

TEST(Citations, EveryRequirementIsCitedByACheck) {
  const Citations found = ReadSources();
  const Registry registry = Registry::Builtin();
  for (const Requirement& row : registry.all()) {
    const bool pairs = row.checks == std::vector<std::string>{"metamorphic"};
    const std::set<std::string>& cited = pairs ? found.mentioned : found.quoted;
    EXPECT_TRUE(cited.contains(row.id)) << row.id << " (" << row.text << ") is judged by no check";
  }
}

TEST(Citations, EveryIdInAChecksSourceIsARequirement) {
  const Registry registry = Registry::Builtin();
  for (const std::string& id : ReadSources().mentioned) EXPECT_NE(registry.Find(id), nullptr) << id;
}

}  // namespace
}  // namespace shardproof
