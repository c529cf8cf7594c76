// id_table.h: what is behind a small integer? Things by integers; that of one taken out is given
// again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shardproof {

template <class T>
class IdTable {
 public:
  // kind: for messages, "stream".
  explicit IdTable(std::string kind) : kind_(std::move(kind)) {}

  int32_t Add(std::unique_ptr<T> thing) {
    for (size_t i = 0; i < things_.size(); ++i) {
      if (things_[i] == nullptr) {
        things_[i] = std::move(thing);
        return static_cast<int32_t>(i);
      }
    }
    things_.push_back(std::move(thing));
    return static_cast<int32_t>(things_.size() - 1);
  }

  // std::logic_error: there is none of this id.
  T& At(int32_t id) const {
    if (id < 0 || static_cast<size_t>(id) >= things_.size() ||
        things_[static_cast<size_t>(id)] == nullptr) {
      throw std::logic_error("no " + kind_ + " has the id " + std::to_string(id));
    }
    return *things_[static_cast<size_t>(id)];
  }

  std::unique_ptr<T> Remove(int32_t id) {
    At(id);
    return std::move(things_[static_cast<size_t>(id)]);
  }

  std::vector<std::unique_ptr<T>> RemoveAll() { return std::exchange(things_, {}); }

 private:
  std::string kind_;
  std::vector<std::unique_ptr<T>> things_;
};

}  // namespace shardproof
