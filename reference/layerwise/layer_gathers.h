// layer_gathers.h: how do owners' new values reach the model weights of all ranks?
//
// All buckets form one chain in the order of forward (gather_chain.h), dense and expert ones
// together: their communicators have different members, and two orders that depend on what a rank's
// program reads first could wait for each other.
//
//   layout, transport         collective                        arrives
//   dealt, all_gather_v       one, pieces of any size           in the buffer
//   dealt, broadcast          one for each rank with a piece    in the buffer
//   dealt, padded             one, pieces as the largest        in a buffer of its own
//   aligned                   one, equal shards                 in the model weights
//
// The buffer is a block of its own or the storage of the bucket's gradients, zeroed afterwards.
// What is sent are the model weights themselves, which nothing writes before the next update;
// padded sends a staged copy. REQUIRES: between two exchanges of tokens the programs of all ranks
// need the same buckets. Else a gather that waits for one rank's compute and an exchange that waits
// for another's gather could wait for each other.
//
// Synchronisation, per bucket:
//   gather waits for compute    values are installed, nobody reads the old ones any more, the
//                               buffer is allocated, gradients are reduced and used
//   compute waits for gather    before values are copied out of the buffer
#pragma once
#include <vector>

#include "reference/fsdp/context.h"
#include "reference/fsdp/parameters.h"
#include "reference/layerwise/gather_chain.h"

namespace reference {

class LayerGathers : public Parameters, private GatherPort {
 public:
  // Nothing is to be gathered at first: every rank has written all initial values itself.
  explicit LayerGathers(Context& context);

  void Need(int32_t group) override;
  void PublishAll() { chain_.PublishAll(); }
  // Publishes what travels; afterwards no buffer exists and nobody writes model weights.
  void Drain() { chain_.FreeBuffers(); }
  // What has not been gathered never will be. REQUIRES: nothing travels.
  void GiveUp() { chain_.MarkPublished(); }
  // Owners have installed new values. REQUIRES: the old ones were published or given up.
  void Rearm();
  void Destroy();

 private:
  // One bucket on its way.
  struct Transfer {
    int32_t bucket = -1;
    spf_addr buffer = 0;     // of its own: all pieces, in the dtype of the parameters
    spf_addr staged = 0;     // padded: this rank's piece
    int64_t piece_size = 0;  // padded: the largest piece
    spf_event done = nullptr;
  };
  void Launch(int32_t position) override;
  void Wait(int32_t position) override;
  void Publish(int32_t position) override;

  Bucket& BucketOf(const Transfer& transfer) { return c_.bucket(transfer.bucket); }
  bool Travels(const Bucket& bucket) const;
  // Whether values arrive in place.
  bool InPlace() const { return c_.config.aligned_layout; }
  // Where the pieces arrive.
  spf_addr Arrival(const Transfer& transfer);
  void AllocateBuffers(Transfer& transfer);
  std::vector<spf_collective> Operations(const Transfer& transfer);
  void CopyOthers(const Transfer& transfer);

  Context& c_;
  std::vector<Transfer> transfers_;  // by position in the chain
  std::vector<int32_t> position_;    // by bucket group: -1 if it is not gathered
  std::vector<uint64_t> counts_;     // all_gather_v: of the operation that is being issued
  GatherChain chain_;
};

}  // namespace reference
