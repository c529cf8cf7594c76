#include "conformance/trace/flight/json_tree.h"

#include <simdjson.h>

#include <string>
#include <vector>

namespace shardproof::flight {
namespace {

namespace dom = simdjson::dom;

constexpr int kMostDepth = 64;

Value Copy(const dom::element& element, ValueTree& tree, int depth) {
  if (depth > kMostDepth) throw FormatError("lists within lists, too deep");
  std::vector<Value> items;
  switch (element.type()) {
    case dom::element_type::ARRAY: {
      const Value list = tree.New(Value::Type::kList);
      for (const dom::element item : dom::array(element))
        items.push_back(Copy(item, tree, depth + 1));
      tree.Append(list, items);
      return list;
    }
    case dom::element_type::OBJECT: {
      const Value table = tree.New(Value::Type::kTable);
      for (const auto& [key, value] : dom::object(element)) {
        items.push_back(ValueTree::Text(key));
        items.push_back(Copy(value, tree, depth + 1));
      }
      tree.Append(table, items);
      return table;
    }
    case dom::element_type::INT64:
      return ValueTree::Int(int64_t(element));
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE:
      return ValueTree::Real(double(element));
    case dom::element_type::STRING:
      return ValueTree::Text(std::string_view(element));
    case dom::element_type::BOOL:
      return ValueTree::Bool(bool(element));
    default:
      return ValueTree::Null();
  }
}

}  // namespace

JsonTexts ReadJson(std::string_view bytes, ValueTree& tree) {
  JsonTexts texts{std::make_shared<dom::parser>(), {}};
  try {
    texts.root = Copy(texts.parser->parse(bytes.data(), bytes.size()), tree, 0);
  } catch (const simdjson::simdjson_error& error) {
    throw FormatError(std::string("not valid JSON: ") + error.what());
  }
  return texts;
}

}  // namespace shardproof::flight
