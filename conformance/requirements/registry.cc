#include "conformance/requirements/registry.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "conformance/requirements/toml_rows.h"

namespace shardproof {

namespace {

bool IsId(const std::string& id) {
  const bool prefix = id.starts_with("PG-") || id.starts_with("FS-") || id.starts_with("GE-") ||
                      id.starts_with("EP-") || id.starts_with("LW-") || id.starts_with("KN-") ||
                      id.starts_with("TP-") || id.starts_with("CP-") || id.starts_with("BU-");
  return prefix && id.size() == 5 && std::isdigit(static_cast<unsigned char>(id[3])) &&
         std::isdigit(static_cast<unsigned char>(id[4]));
}

std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    const size_t begin = part.find_first_not_of(' ');
    if (begin != std::string::npos)
      parts.push_back(part.substr(begin, part.find_last_not_of(' ') + 1 - begin));
  }
  return parts;
}

// A text of `explain`, which has room for so many letters. Empty if it is not there.
constexpr size_t kExplanationMost = 400;

std::string Explanation(const std::string& file, const toml::table& row, const std::string& id,
                        const char* name) {
  const std::string text = OptionalField(file, row, name);
  if (!text.empty() && text.back() != '.')
    Refuse(file, row, id + ": " + name + " ends with a full stop");
  if (text.size() > kExplanationMost)
    Refuse(file, row,
           id + ": " + name + " has " + std::to_string(text.size()) + " letters, at most " +
               std::to_string(kExplanationMost) + " are read");
  return text;
}

Requirement ParseRow(const std::string& file, const toml::table& row) {
  Requirement requirement;
  requirement.id = Field(file, row, "id");
  if (!IsId(requirement.id))
    Refuse(file, row,
           "id " + requirement.id +
               " is not PG-nn, FS-nn, GE-nn, EP-nn, LW-nn, TP-nn, CP-nn, KN-nn or BU-nn");
  const std::string level = Field(file, row, "level");
  if (level != "MUST" && level != "SHOULD")
    Refuse(file, row, "level " + level + ": use MUST or SHOULD");
  requirement.level = level == "MUST" ? RequirementLevel::kMust : RequirementLevel::kShould;
  requirement.text = Field(file, row, "text");
  if (requirement.text.back() != '.')
    Refuse(file, row, requirement.id + ": text is one sentence and ends with a stop");
  requirement.why = Explanation(file, row, requirement.id, "why");
  requirement.bug = Explanation(file, row, requirement.id, "bug");
  requirement.reason = Explanation(file, row, requirement.id, "reason");
  requirement.fix = Explanation(file, row, requirement.id, "fix");
  requirement.since = Field(file, row, "since");
  requirement.source = Field(file, row, "source");
  requirement.checks = SplitList(Field(file, row, "check"));
  return requirement;
}

void ParseFile(const std::string& file, const std::string& text, std::vector<Requirement>& all) {
  ForEachRow(file, text, "requirement",
             {"id", "level", "text", "why", "bug", "reason", "fix", "since", "source", "check"},
             [&](const toml::table& row) {
               Requirement requirement = ParseRow(file, row);
               const bool twice = std::any_of(
                   all.begin(), all.end(),
                   [&](const Requirement& other) { return other.id == requirement.id; });
               if (twice) Refuse(file, row, "id " + requirement.id + " is taken: ids are unique");
               all.push_back(std::move(requirement));
             });
}

}  // namespace

Registry Registry::Parse(const std::vector<std::pair<std::string, std::string>>& files) {
  Registry registry;
  for (const auto& [file, text] : files) ParseFile(file, text, registry.requirements_);
  std::sort(registry.requirements_.begin(), registry.requirements_.end(),
            [](const Requirement& a, const Requirement& b) { return a.id < b.id; });
  return registry;
}

Registry Registry::Builtin() { return Parse(BuiltinRequirementFiles()); }

std::set<std::string> Registry::Ids(RequirementLevel level) const {
  std::set<std::string> ids;
  for (const Requirement& row : requirements_)
    if (row.level == level) ids.insert(row.id);
  return ids;
}

const Requirement* Registry::Find(std::string_view id) const {
  const auto at =
      std::lower_bound(requirements_.begin(), requirements_.end(), id,
                       [](const Requirement& one, std::string_view want) { return one.id < want; });
  return at == requirements_.end() || at->id != id ? nullptr : &*at;
}

}  // namespace shardproof
