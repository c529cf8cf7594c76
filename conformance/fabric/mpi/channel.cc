#include "conformance/fabric/mpi/channel.h"

#include <algorithm>
#include <iterator>

namespace shardproof::mpi {

std::byte* Heap::Allocate(uint64_t bytes) {
  const uint64_t size = (std::max<uint64_t>(bytes, 1) + 63) & ~uint64_t{63};
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    if (range->second < size) continue;
    const uint64_t offset = range->first, rest = range->second - size;
    free_.erase(range);
    if (rest) free_[offset + size] = rest;
    used_[offset] = size;
    high_water_ = std::max(high_water_, offset + size);
    return base_ + offset;
  }
  return nullptr;
}

void Heap::Free(std::byte* data) {
  const auto used = used_.find(static_cast<uint64_t>(data - base_));
  if (used == used_.end()) return;
  auto range = free_.emplace(used->first, used->second).first;
  used_.erase(used);
  const auto next = std::next(range);
  if (next != free_.end() && range->first + range->second == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range == free_.begin()) return;
  const auto before = std::prev(range);
  if (before->first + before->second == range->first) {
    before->second += range->second;
    free_.erase(range);
  }
}

std::byte* ChannelSender::Allocate(uint64_t bytes) {
  Collect();
  return heap_.Allocate(bytes);
}

void ChannelSender::Post(const Posted& message) {
  ++uses_[message.data];
  if (!waiting_.empty() || !memory_->posted.Put(message)) waiting_.push_back(message);
}

void ChannelSender::Flush() {
  while (!waiting_.empty() && memory_->posted.Put(waiting_.front())) waiting_.pop_front();
}

void ChannelSender::Collect() {
  std::byte* data = nullptr;
  while (memory_->returned.Take(&data)) {
    const auto uses = uses_.find(data);
    if (uses == uses_.end() || --uses->second > 0) continue;
    uses_.erase(uses);
    heap_.Free(data);
  }
  Flush();
}

void ChannelReceiver::Return(std::byte* data) {
  waiting_.push_back(data);
  while (!waiting_.empty() && memory_->returned.Put(waiting_.front())) waiting_.pop_front();
}

}  // namespace shardproof::mpi
