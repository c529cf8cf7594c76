#include "conformance/runner/support/supports_file.h"

#include <toml++/toml.h>

#include <sstream>
#include <stdexcept>
#include <utility>

#include "conformance/common/safe_text.h"

namespace shardproof {
namespace {

constexpr const char* kSpaces[] = {"strategies", "experts", "layer_wise", "pipelines"};
constexpr const char* kWithout = "without";
constexpr const char* kPlain = "plain";
constexpr const char* kChanges = "changes";

[[noreturn]] void Bad(const std::string& file, const toml::source_region& at,
                      const std::string& what) {
  throw std::invalid_argument(file + ":" + std::to_string(at.begin.line) + ": " + what);
}

std::set<std::string> ValuesIn(const toml::key& knob, const toml::node& node,
                               const std::string& file) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty())
    Bad(file, node.source(), std::string(knob.str()) + " wants a list of values in quotes");
  std::set<std::string> values;
  for (const toml::node& value : *list) {
    const auto text = value.value_exact<std::string>();
    if (!text) Bad(file, value.source(), std::string(knob.str()) + ": values stand in quotes");
    values.insert(*text);
  }
  return values;
}

std::vector<SupportedValues> WithoutIn(const toml::node& node, const std::string& file) {
  const toml::array* list = node.as_array();
  if (list == nullptr) Bad(file, node.source(), "without wants a list of tables");
  std::vector<SupportedValues> without;
  for (const toml::node& row : *list) {
    const toml::table* knobs = row.as_table();
    if (knobs == nullptr || knobs->empty())
      Bad(file, row.source(), "without: each is a table of knobs and lists of values");
    without.emplace_back();
    for (const auto& [knob, values] : *knobs)
      without.back()[std::string(knob.str())] = ValuesIn(knob, values, file);
  }
  return without;
}

std::map<std::string, std::string> PlainIn(const toml::node& node, const std::string& file) {
  const toml::table* knobs = node.as_table();
  if (knobs == nullptr) Bad(file, node.source(), "plain wants a table of knobs and values");
  std::map<std::string, std::string> plain;
  for (const auto& [knob, value] : *knobs) {
    const auto text = value.value_exact<std::string>();
    if (!text)
      Bad(file, value.source(), "plain: " + std::string(knob.str()) + " wants a value in quotes");
    plain[std::string(knob.str())] = *text;
  }
  return plain;
}

int ChangesIn(const toml::node& node, const std::string& file) {
  const auto count = node.value_exact<int64_t>();
  if (!count || *count < 2 || *count > 64)
    Bad(file, node.source(), "changes wants a number of knobs, 2 to 64");
  return static_cast<int>(*count);
}

toml::array ListOf(const std::set<std::string>& values) {
  toml::array list;
  for (const std::string& value : values) list.push_back(value);
  return list;
}

}  // namespace

Supported ParseSupports(std::string_view text, const std::string& file_name) {
  toml::table root;
  try {
    root = toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    Bad(file_name, error.source(), std::string(error.description()));
  }
  Supported supported;
  for (const auto& [name, section] : root) {
    bool known = false;
    for (const char* space : kSpaces) known = known || name.str() == space;
    const toml::table* knobs = section.as_table();
    if (!known || knobs == nullptr)
      Bad(file_name, name.source(),
          "wanted [strategies], [experts], [layer_wise] or [pipelines], not " +
              std::string(name.str()));
    Taken& taken = supported[std::string(name.str())];
    for (const auto& [knob, list] : *knobs) {
      if (knob.str() == kWithout) {
        taken.without = WithoutIn(list, file_name);
      } else if (knob.str() == kPlain) {
        taken.plain = PlainIn(list, file_name);
      } else if (knob.str() == kChanges) {
        taken.changes = ChangesIn(list, file_name);
      } else {
        taken.values[std::string(knob.str())] = ValuesIn(knob, list, file_name);
      }
    }
  }
  return supported;
}

std::string SupportsText(const Supported& supported, const std::string& comment) {
  std::ostringstream out;
  out << "# " << VisibleLine(comment) << "\n";
  for (const char* space : kSpaces) {
    const auto found = supported.find(space);
    if (found == supported.end()) continue;
    toml::table section;  // names with dots are quoted
    for (const auto& [knob, values] : found->second.values) section.insert(knob, ListOf(values));
    toml::array without;
    for (const SupportedValues& one : found->second.without) {
      toml::table row;
      for (const auto& [knob, values] : one) row.insert(knob, ListOf(values));
      row.is_inline(true);
      without.push_back(std::move(row));
    }
    if (!without.empty()) section.insert(kWithout, std::move(without));
    toml::table plain;
    for (const auto& [knob, value] : found->second.plain) plain.insert(knob, value);
    plain.is_inline(true);
    if (!plain.empty()) section.insert(kPlain, std::move(plain));
    if (found->second.changes != kMostChanges) section.insert(kChanges, found->second.changes);
    out << "\n[" << space << "]\n" << section << "\n";
  }
  return out.str();
}

void CheckSupports(const Supported& supported, const std::vector<CaseFactors>& spaces,
                   const std::string& file_name) {
  for (const CaseFactors& space : spaces) {
    const auto found = supported.find(space.name);
    if (found == supported.end()) continue;
    try {
      TakenOf(space, found->second);
      PlainValues(space, found->second);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(file_name + ": " + error.what());
    }
  }
}

}  // namespace shardproof
