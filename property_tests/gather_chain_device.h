// gather_chain_device.h: what would a rank's memory hold, if the chain's calls did what they stand
// for?
//
// By bucket: which step's values it has, and what is under way. Values arrive in the storage of
// gradients. Asserts what no order of calls may break.
#pragma once
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "reference/plan/gather_chain.h"

namespace shardproof {

using Positions = std::vector<int32_t>;

class GatherDevice : public reference::GatherPort {
 public:
  // travels: false for a bucket without elements, or a group of one rank.
  explicit GatherDevice(const std::vector<bool>& travels) : buckets_(travels.size()) {
    for (size_t p = 0; p < travels.size(); ++p) buckets_[p].travels = travels[p];
  }

  void Launch(int32_t p) override {
    Bucket& b = At(p);
    RC_ASSERT(!b.in_flight);
    RC_ASSERT(!gradients_);
    b.in_flight = true;
    b.carried = step_;
    ++calls_;
    if (!b.travels) return;
    b.scratch = true;
    sequence_.push_back(p);
  }
  void Wait(int32_t p) override {
    RC_ASSERT(At(p).in_flight && !At(p).waited);
    At(p).waited = true;
    ++calls_;
    most_outstanding_ = std::max(most_outstanding_, Outstanding());
  }
  void Publish(int32_t p) override {
    Bucket& b = At(p);
    RC_ASSERT(b.in_flight && b.waited);
    most_outstanding_ = std::max(most_outstanding_, Outstanding());
    b.value = b.carried;
    b.in_flight = b.waited = b.scratch = false;
    ++calls_;
  }

  // Gradients are added: all of their storage is zero.
  void Backward() {
    for (const Bucket& b : buckets_) RC_ASSERT(!b.in_flight && !b.scratch);
    gradients_ = true;
  }
  // Owners have new values; everywhere: so has every other rank.
  void Update(bool everywhere) {
    RC_ASSERT(Outstanding() == 0);
    ++step_;
    gradients_ = false;
    sequence_.clear();
    for (Bucket& b : buckets_) b.value = everywhere ? step_ : b.value;
  }

  bool Fresh(int32_t p) const { return buckets_[static_cast<size_t>(p)].value == step_; }
  bool AllFresh() const {
    return std::all_of(buckets_.begin(), buckets_.end(),
                       [&](const Bucket& b) { return b.value == step_; });
  }
  int32_t Outstanding() const {
    return static_cast<int32_t>(std::count_if(buckets_.begin(), buckets_.end(),
                                              [](const Bucket& b) { return b.in_flight; }));
  }
  const Positions& sequence() const { return sequence_; }
  int64_t calls() const { return calls_; }
  int32_t most_outstanding() const { return most_outstanding_; }
  int32_t size() const { return static_cast<int32_t>(buckets_.size()); }

 private:
  struct Bucket {
    bool travels = true, in_flight = false, waited = false;
    bool scratch = false;  // values lie in the storage of its gradients
    int64_t value = 0, carried = 0;
  };
  Bucket& At(int32_t p) { return buckets_.at(static_cast<size_t>(p)); }

  std::vector<Bucket> buckets_;
  Positions sequence_;  // collectives since the last update
  int64_t step_ = 0, calls_ = 0;
  int32_t most_outstanding_ = 0;
  bool gradients_ = false;
};

}  // namespace shardproof
