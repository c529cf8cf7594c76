#include "conformance/requirements/toml_rows.h"

#include <algorithm>
#include <stdexcept>

namespace shardproof {

void Refuse(const std::string& file, const toml::node& at, const std::string& what) {
  throw std::invalid_argument(file + ", line " + std::to_string(at.source().begin.line) + ": " +
                              what);
}

void ForEachRow(const std::string& file, const std::string& text, const std::string& name,
                std::initializer_list<const char*> fields,
                const std::function<void(const toml::table&)>& row) {
  toml::table document;
  try {
    document = toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw std::invalid_argument(file + ", line " + std::to_string(error.source().begin.line) +
                                ": " + std::string(error.description()));
  }
  for (const auto& [key, value] : document) {
    if (key.str() != name || !value.is_array_of_tables())
      Refuse(file, value,
             "unknown entry " + std::string(key.str()) + ": this file holds [[" + name + "]] only");
  }
  const toml::array* rows = document[name].as_array();
  if (rows == nullptr) return;
  for (const toml::node& node : *rows) {
    const toml::table& table = *node.as_table();
    for (const auto& [key, value] : table) {
      if (std::find(fields.begin(), fields.end(), key.str()) == fields.end())
        Refuse(file, table, "unknown field " + std::string(key.str()));
    }
    row(table);
  }
}

std::string Field(const std::string& file, const toml::table& row, const char* name) {
  const auto value = row[name].value<std::string>();
  if (!value || value->empty())
    Refuse(file, row, std::string("field ") + name + " is missing or no text");
  return *value;
}

std::string OptionalField(const std::string& file, const toml::table& row, const char* name) {
  return row.contains(name) ? Field(file, row, name) : "";
}

}  // namespace shardproof
