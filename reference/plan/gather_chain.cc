#include "reference/plan/gather_chain.h"

#include <stdexcept>
#include <string>

namespace reference {

void GatherChain::Need(int32_t position) {
  if (position < 0 || position >= buckets_) {
    throw std::out_of_range("bucket " + std::to_string(position) + " of a chain of " +
                            std::to_string(buckets_));
  }
  while (published_ <= position) PublishNext(true);
}

void GatherChain::PublishAll() {
  while (published_ < buckets_) PublishNext(true);
}

void GatherChain::FreeBuffers() {
  while (published_ < launched_) PublishNext(false);
}

// The next one starts before this one's values are copied, so that the copies hide it too.
void GatherChain::PublishNext(bool launch_ahead) {
  if (launched_ == published_) port_.Launch(launched_++);
  port_.Wait(published_);
  if (launch_ahead && launched_ < buckets_) port_.Launch(launched_++);
  port_.Publish(published_++);
}

void GatherChain::Rearm() {
  if (published_ < buckets_) {
    throw std::logic_error("bucket " + std::to_string(published_) + " of " +
                           std::to_string(buckets_) + " was not published since the last step");
  }
  launched_ = published_ = 0;
}

void GatherChain::MarkPublished() {
  if (launched_ != published_)
    throw std::logic_error("bucket " + std::to_string(published_) + " is under way");
  launched_ = published_ = buckets_;
}

}  // namespace reference
