// layer_gathers.h: how do owners' new values reach the model weights of all ranks?
//
//   layout, transport         collective                        arrives
//   dealt, all_gather_v       one, pieces of any size           in the buffer
//   dealt, broadcast          one for each rank with a piece    in the buffer
//   dealt, padded             one, pieces as the largest        in a buffer of its own
//   aligned                   one, equal shards                 in the model weights
//
// The buffer is a block of its own or the storage of the bucket's gradients, zeroed afterwards.
// What is sent are the model weights themselves, which nothing writes before the next update;
// padded sends a staged copy.
//
// Synchronisation, per bucket:
//   gather waits for compute    values are installed, nobody reads the old ones any more, the
//                               buffer is allocated, gradients are reduced and used
//   compute waits for gather    before values are copied out of the buffer
#pragma once
#include <stdexcept>
#include <vector>

#include "reference/core/context.h"
#include "reference/run/gathers.h"

namespace reference {

class LayerGathers : public Gathers {
 public:
  explicit LayerGathers(Context& context);

  void Launch(int32_t group, bool first) override;
  void LaunchParts(int32_t) override { throw std::logic_error("whole parameters have no parts"); }
  void Wait(int32_t group) override;
  // Copies others' values into the model weights before; own ones are there.
  void Release(int32_t group) override;
  void Reshard(int32_t) override { throw std::logic_error("whole parameters have no parts"); }
  void Destroy() override;

 private:
  // One bucket on its way.
  struct Transfer {
    int32_t bucket = -1;
    spf_addr buffer = 0;     // of its own: all pieces, in the dtype of the parameters
    spf_addr staged = 0;     // padded: this rank's piece
    int64_t piece_size = 0;  // padded: the largest piece
    spf_event done = nullptr;
  };
  Bucket& BucketOf(const Transfer& transfer) { return c_.bucket(transfer.bucket); }
  // Whether values arrive in place.
  bool InPlace() const { return c_.config.aligned_layout; }
  // Where the pieces arrive.
  spf_addr Arrival(const Transfer& transfer);
  void AllocateBuffers(Transfer& transfer);
  std::vector<spf_collective> Operations(const Transfer& transfer);
  void CopyOthers(const Transfer& transfer);

  Context& c_;
  std::vector<Transfer> transfers_;  // by bucket group; frozen ones are not gathered
  std::vector<uint64_t> counts_;     // all_gather_v: of the operation that is being issued
};

}  // namespace reference
