#include "conformance/trace/flight/value_tree.h"

#include <sys/mman.h>
#include <unistd.h>

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

// Large pages, where the kernel has them: a fault for each of these instead of hundreds.
template <typename T>
void ReserveLargePages(std::vector<T>& values, size_t count) {
  values.reserve(count);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(values.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(values.data() + values.capacity()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace

void ValueTree::ExpectFrom(size_t bytes) {
  constexpr size_t kMost = size_t{1} << 25;
  ReserveLargePages(values_, std::min(kMost, bytes / 2));
  ReserveLargePages(remembered_, std::min(kMost, bytes / 8));
}

void ValueTree::Append(const Value& container, std::span<const Value> items) {
  Slice& slice = slices_[container.container];
  const size_t count = slice.count + items.size();
  if (slice.begin + slice.count == values_.size() || slice.count == 0) {
    if (slice.count == 0) slice.begin = values_.size();
    values_.insert(values_.end(), items.begin(), items.end());
    slice.room = count;
  } else {
    if (count > slice.room) Move(slice, 2 * count);
    std::copy(items.begin(), items.end(), values_.data() + slice.begin + slice.count);
  }
  slice.count = count;
}

// Others came behind it: it moves to the end, and not again for each batch that it grows by.
void ValueTree::Move(Slice& slice, size_t room) {
  const size_t begin = values_.size();
  values_.resize(begin + room);
  std::copy_n(values_.data() + slice.begin, slice.count, values_.data() + begin);
  slice.begin = begin;
  slice.room = room;
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
