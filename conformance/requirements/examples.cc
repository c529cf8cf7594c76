#include "conformance/requirements/examples.h"

#include "conformance/requirements/toml_rows.h"

namespace shardproof {

Examples Examples::Parse(const std::string& file, const std::string& text) {
  Examples examples;
  ForEachRow(file, text, "example", {"id", "fault", "source", "case", "text", "none"},
             [&](const toml::table& row) {
               Example example;
               example.id = Field(file, row, "id");
               if (examples.Find(example.id) != nullptr)
                 Refuse(file, row, "id " + example.id + " is taken: one example each");
               example.none = OptionalField(file, row, "none");
               if (example.none.empty()) {
                 example.fault = Field(file, row, "fault");
                 example.source = Field(file, row, "source");
                 example.case_id = Field(file, row, "case");
                 example.text = Field(file, row, "text");
               }
               examples.examples_.push_back(std::move(example));
             });
  return examples;
}

Examples Examples::Builtin() {
  const auto files = BuiltinExampleFiles();
  return Parse(files.front().first, files.front().second);
}

const Example* Examples::Find(std::string_view id) const {
  for (const Example& example : examples_)
    if (example.id == id) return &example;
  return nullptr;
}

}  // namespace shardproof
