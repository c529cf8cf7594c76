#include "reference/plan/gather_chain.h"

#include <stdexcept>
#include <string>

namespace reference {

void GatherChain::Need(int32_t position) {
  if (position < 0 || position >= buckets_) {
    throw std::out_of_range("bucket " + std::to_string(position) + " of a chain of " +
                            std::to_string(buckets_));
  }
  while (published_ <= position) PublishNext();
}

void GatherChain::PublishAll() {
  while (published_ < buckets_) PublishNext();
}

// The next one starts before this one's values are copied, so that the copies hide it too.
void GatherChain::PublishNext() {
  if (launched_ == published_) port_.Launch(launched_++);
  port_.Wait(published_);
  if (launched_ < buckets_) port_.Launch(launched_++);
  port_.Publish(published_++);
}

}  // namespace reference
