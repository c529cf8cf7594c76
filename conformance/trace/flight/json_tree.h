// json_tree.h: the same values, of JSON.
#pragma once
#include <memory>
#include <string_view>

#include "conformance/trace/flight/value_tree.h"

namespace simdjson::dom {
class parser;
}

namespace shardproof::flight {

// Texts of the tree lie in here.
struct JsonTexts {
  std::shared_ptr<simdjson::dom::parser> parser;
  Value root;
};

// Throws FormatError.
JsonTexts ReadJson(std::string_view bytes, ValueTree& tree);

}  // namespace shardproof::flight
