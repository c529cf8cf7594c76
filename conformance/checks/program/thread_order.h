// thread_order.h: do hand-overs order all uses of a stream, event or communicator by the host
// threads of a rank?
//
// If not, the order of issue in the trace is one of several, and nothing can be proved from it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/program/shared_clock.h"

namespace shardproof::graph {

class ThreadOrder {
 public:
  enum class Resource : uint8_t { kStream, kEvent, kCommunicator, kDevice };

  // A stream's number: of all streams at once, those that were not used yet too.
  static constexpr int32_t kAllStreams = -1;

  // True when the last use was by another thread and precedes this one in no recorded way. kDevice:
  // the order in which communicator kernels are issued.
  bool Touch(Resource resource, int32_t id, uint16_t thread) {
    Grow(thread);
    bool unordered = false;
    const auto follow = [&](const Use& last) {
      unordered =
          unordered || (last.thread != thread && clocks_[thread].Of(last.thread) < last.time);
    };
    if (resource == Resource::kStream && id == kAllStreams) {
      for (const auto& [used, last] : last_) {
        if (used.first == Resource::kStream) follow(last);
      }
    }
    if (resource == Resource::kStream) follow(last_[{resource, kAllStreams}]);
    Use& last = last_[{resource, id}];
    follow(last);
    last = {thread, Tick(thread)};
    return unordered;
  }

  void Post(int32_t id, uint16_t thread) {
    Grow(thread);
    Tick(thread);
    posts_[id] = clocks_[thread];
  }

  void Await(int32_t id, uint16_t thread) {
    Grow(thread);
    clocks_[thread].Join(posts_[id]);
  }

  static std::string Name(Resource resource, int32_t id) {
    switch (resource) {
      case Resource::kStream:
        return id == kAllStreams ? "all streams" : "stream " + std::to_string(id);
      case Resource::kEvent:
        return "event " + std::to_string(id);
      case Resource::kCommunicator:
        return "a communicator";
      default:
        return "the device";
    }
  }

 private:
  struct Use {
    uint16_t thread = 0;
    uint32_t time = 0;
  };
  void Grow(uint16_t thread) {
    if (clocks_.size() <= thread) clocks_.resize(size_t{thread} + 1);
  }
  uint32_t Tick(uint16_t thread) {
    const uint32_t time = clocks_[thread].Of(thread) + 1;
    clocks_[thread].Set(thread, time);
    return time;
  }
  std::vector<SharedClock<4>> clocks_;
  std::map<std::pair<Resource, int32_t>, Use> last_;
  std::map<int32_t, SharedClock<4>> posts_;
};

}  // namespace shardproof::graph
