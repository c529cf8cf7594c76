// tuple_list.h: how are hundreds of thousands of tuples kept small?
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <vector>

namespace shardproof {

using Tuple = std::span<const uint8_t>;

// Tuples of one length, a byte for each value, in one block: processes are forked by the thousand
// from one that has them.
class TupleList {
 public:
  TupleList() = default;
  TupleList(std::initializer_list<std::vector<uint8_t>> tuples) {
    for (const std::vector<uint8_t>& tuple : tuples) Add(tuple);
  }

  // The values of head, then those of tail. REQUIRES: as many as each tuple before has.
  void Add(Tuple head, Tuple tail = {}) {
    width_ = head.size() + tail.size();
    values_.insert(values_.end(), head.begin(), head.end());
    values_.insert(values_.end(), tail.begin(), tail.end());
    ++size_;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Tuple operator[](size_t i) const { return Tuple(values_).subspan(i * width_, width_); }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Tuple;
    using difference_type = std::ptrdiff_t;
    using pointer = const Tuple*;
    using reference = Tuple;
    Iterator(const TupleList& list, size_t at) : list_(&list), at_(at) {}
    Tuple operator*() const { return (*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return {*list_, at_++}; }
    bool operator==(const Iterator&) const = default;

   private:
    const TupleList* list_;
    size_t at_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size_}; }

  bool operator==(const TupleList&) const = default;

 private:
  size_t width_ = 0, size_ = 0;
  std::vector<uint8_t> values_;
};

}  // namespace shardproof
