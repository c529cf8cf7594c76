// value_tree.h: what does a file of nested lists and tables hold (a pickle, or JSON)?
//
// Values are 16 bytes in one array; texts stay in the bytes of the file, which must outlive the
// tree.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof::flight {

struct Value {
  enum class Type : uint8_t { kNull, kBool, kInt, kReal, kText, kList, kTable };
  Type type = Type::kNull;
  uint32_t size = 0;  // kText: bytes
  union {
    int64_t number = 0;  // kBool, kInt
    double real;
    const char* text;
    size_t container;  // kList, kTable: its place in the tree
  };
};

// What a file cannot hold.
class FormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ValueTree {
 public:
  static Value Null() { return {}; }
  static Value Bool(bool is) { return Number(Value::Type::kBool, is ? 1 : 0); }
  static Value Int(int64_t number) { return Number(Value::Type::kInt, number); }
  static Value Real(double real) {
    Value value;
    value.type = Value::Type::kReal;
    value.real = real;
    return value;
  }
  static Value Text(std::string_view text) {
    Value value;
    value.type = Value::Type::kText;
    value.size = static_cast<uint32_t>(text.size());
    value.text = text.data();
    return value;
  }
  Value New(Value::Type container) {
    Value value;
    value.type = container;
    value.container = slices_.size();
    slices_.push_back({});
    return value;
  }
  // Forgets all values, and keeps the memory.
  void Clear() {
    values_.clear();
    slices_.clear();
    remembered_.clear();
  }
  // Room for what a file of so many bytes is likely to hold: lists do not move as they grow, and
  // memory is what is written.
  void ExpectFrom(size_t bytes);
  // REQUIRES: a container of this tree. A table's items are key, value, key, value ...
  void Append(const Value& container, std::span<const Value> items);
  std::span<const Value> Items(const Value& container) const {
    const Slice& slice = slices_[container.container];
    return {values_.data() + slice.begin, slice.count};
  }

  // Of a table; throw FormatError, which names the key, where it is missing or of another type.
  const Value* Find(const Value& table, std::string_view key) const;  // null: not there
  std::string_view TextAt(const Value& table, std::string_view key) const;
  int64_t IntAt(const Value& table, std::string_view key) const;
  std::span<const Value> ListAt(const Value& table, std::string_view key) const;

  // Values that a file gives numbers.
  struct Remembered {
    Value value;
    bool known = false;
  };
  std::vector<Remembered>& remembered() { return remembered_; }

  static std::string_view TextOf(const Value& value) { return {value.text, value.size}; }

 private:
  struct Slice {
    size_t begin = 0, count = 0;
    size_t room = 0;  // values from begin on that are its own
  };
  static Value Number(Value::Type type, int64_t number) {
    Value value;
    value.type = type;
    value.number = number;
    return value;
  }
  void Move(Slice& slice, size_t room);
  const Value& At(const Value& table, std::string_view key, Value::Type type) const;

  std::vector<Value> values_;
  std::vector<Slice> slices_;
  std::vector<Remembered> remembered_;
};

}  // namespace shardproof::flight
