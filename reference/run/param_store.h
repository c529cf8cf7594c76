// param_store.h: what persists between steps, and who is authoritative for it?
//
// fp32 main weights of this rank's shards, the model weights that nodes read (in their dtype), main
// gradients, optimizer state. All blocks are zeroed, so padding is zero for good. Everything here
// happens on the compute stream.
#pragma once
#include "reference/core/context.h"

namespace reference {

class ParamStore {
 public:
  explicit ParamStore(Context& context) : c_(context) {}

  // Allocates what persists.
  void Create();
  // Writes the initial values of this rank's shards into the main weights.
  void AskForInitial();
  // H10: casts this rank's shard of the main weights into the model weights, into each copy. The
  // next gather must see it (FS-23).
  void Install();
  // Of all parameters, other ranks' too, the initial values. REQUIRES: model weights are whole.
  void InstallInitialEverywhere();
  // PARAM: the main weights of this rank's shards.
  void PublishParams();
  // GRAD: reduced and scaled gradients of this rank's shards, before clipping.
  void PublishGrads();
  void Destroy();

 private:
  // This rank's shard, parameter by parameter.
  void Publish(spf_result what, const Bucket& bucket, spf_addr shard, spf_dtype dtype);
  // users: whose collectives send from the block or receive into it.
  spf_addr Zeroed(int64_t elements, int32_t dtype, spf_purpose purpose, int32_t module,
                  const CollectiveBuffers::Users& users = {});

  Context& c_;
};

}  // namespace reference
