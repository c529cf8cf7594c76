// gather_chain.h: when does which bucket's gather start, and when are its parameters usable?
//
// After a step every rank has new values of its own parameters only. Buckets are gathered during
// the next forward, in one order that depends on nothing but the tables: whatever a rank's program
// needs first, repeats or leaves out, its sequence of collectives is that of its peers. The order
// is that of forward, first layers first, so that bucket i + 1 travels while the modules of bucket
// i compute. Each bucket is gathered once per step, so every step has a chain of its own.
//
//   launched ------ waited ------ next one launched ------ published
//
// At most two buckets are between launch and publication: one that is being published and one
// that travels.
#pragma once
#include <cstdint>

namespace reference {

// What a chain does to a bucket. Positions count in the order of the chain.
class GatherPort {
 public:
  virtual ~GatherPort() = default;
  // Enqueues the collective. Its source and destination stay as they are until Wait.
  virtual void Launch(int32_t position) = 0;
  // What is enqueued on the compute stream from now on comes after the collective, all of it.
  virtual void Wait(int32_t position) = 0;
  // Others' parameters take their values, own ones are not touched; what the collective needed is
  // given back, and zeroed if it is the gradients' storage.
  virtual void Publish(int32_t position) = 0;
};

class GatherChain {
 public:
  // stale: else nothing is to be gathered, because values are the same everywhere.
  GatherChain(int32_t buckets, GatherPort& port, bool stale = true)
      : buckets_(buckets), port_(port), launched_(stale ? 0 : buckets), published_(launched_) {}

  // Before modules read parameters of this bucket: it and those before it are published. Does
  // nothing if that is so already, as in later microbatches and recompute.
  // Throws std::out_of_range.
  void Need(int32_t position);
  // Publishes all buckets: before the first gradient is added (a gather may use the gradients'
  // storage), before evaluation and before a checkpoint.
  void PublishAll();

 private:
  void PublishNext();

  const int32_t buckets_;
  GatherPort& port_;
  int32_t launched_, published_;  // buckets so far; launched_ - published_ is 0 or 1
};

}  // namespace reference
