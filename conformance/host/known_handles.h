// known_handles.h: which other stream, event, block or group could a call name by mistake?
#pragma once
#include <algorithm>
#include <vector>

namespace shardproof {

// The live handles of one type, in the order of their creation.
template <class T>
class KnownHandles {
 public:
  void Add(T handle) { live_.push_back(handle); }
  void Remove(T handle) { std::erase(live_, handle); }
  // The one created next; after the last the first. The handle itself where it is the only one.
  T Other(T handle) const {
    const auto at = std::find(live_.begin(), live_.end(), handle);
    if (live_.empty()) return handle;
    return at == live_.end() || at + 1 == live_.end() ? live_.front() : *(at + 1);
  }

 private:
  std::vector<T> live_;
};

}  // namespace shardproof
