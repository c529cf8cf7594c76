#include "conformance/trace/flight/value_tree.h"

#include <algorithm>

namespace shardproof::flight {

namespace {

const char* Word(Value::Type type) {
  switch (type) {
    case Value::Type::kInt:
      return "a whole number";
    case Value::Type::kText:
      return "a text";
    case Value::Type::kList:
      return "a list";
    default:
      return "another type";
  }
}

}  // namespace

void ValueTree::Append(const Value& container, std::span<const Value> items) {
  Slice& slice = slices_[container.container];
  const size_t count = slice.count + items.size();
  if (count > slice.room) {
    const bool last = slice.begin + slice.room == values_.size();
    // Others came behind it: it moves to the end, and not again for each batch that it grows by.
    const size_t begin = last ? slice.begin : values_.size();
    const size_t room = last || slice.count == 0 ? count : 2 * count;
    values_.resize(begin + room);
    if (!last) std::copy_n(values_.data() + slice.begin, slice.count, values_.data() + begin);
    slice.begin = begin;
    slice.room = room;
  }
  std::copy(items.begin(), items.end(), values_.data() + slice.begin + slice.count);
  slice.count = count;
}

const Value* ValueTree::Find(const Value& table, std::string_view key) const {
  if (table.type != Value::Type::kTable)
    throw FormatError("a table with the key \"" + std::string(key) + "\" is expected");
  const std::span<const Value> items = Items(table);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].type == Value::Type::kText && TextOf(items[i]) == key) return &items[i + 1];
  }
  return nullptr;
}

const Value& ValueTree::At(const Value& table, std::string_view key, Value::Type type) const {
  const Value* value = Find(table, key);
  if (value == nullptr) throw FormatError("the key \"" + std::string(key) + "\" is missing");
  if (value->type != type) throw FormatError("\"" + std::string(key) + "\" is not " + Word(type));
  return *value;
}

std::string_view ValueTree::TextAt(const Value& table, std::string_view key) const {
  return TextOf(At(table, key, Value::Type::kText));
}

int64_t ValueTree::IntAt(const Value& table, std::string_view key) const {
  return At(table, key, Value::Type::kInt).number;
}

std::span<const Value> ValueTree::ListAt(const Value& table, std::string_view key) const {
  return Items(At(table, key, Value::Type::kList));
}

}  // namespace shardproof::flight
