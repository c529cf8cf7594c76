// toml_rows.h: what stands in a file of [[name]] tables, and where is it wrong?
#pragma once
#include <toml++/toml.h>

#include <functional>
#include <initializer_list>
#include <string>

namespace shardproof {

// Throws std::invalid_argument: "FILE, line N: what".
[[noreturn]] void Refuse(const std::string& file, const toml::node& at, const std::string& what);

// The rows [[name]] of a file that holds nothing else, in order. A field that is none of fields is
// refused, as is a syntax error.
void ForEachRow(const std::string& file, const std::string& text, const std::string& name,
                std::initializer_list<const char*> fields,
                const std::function<void(const toml::table&)>& row);

// A text that must be there, and not be empty.
std::string Field(const std::string& file, const toml::table& row, const char* name);
// Empty if it is not there.
std::string OptionalField(const std::string& file, const toml::table& row, const char* name);

}  // namespace shardproof
