// checkpoint.h: how do main weights and optimizer state get to disk and back?
#pragma once
#include "reference/fsdp/context.h"
#include "reference/optim/optimizer.h"

namespace reference {

class Checkpoint {
 public:
  Checkpoint(Context& context, Optimizer& optimizer) : c_(context), optimizer_(optimizer) {}

  // Each rank writes its shards. Returns when the files of every rank of the data-parallel groups
  // are complete: a rank may load at once what its peers have saved.
  void Save(const std::string& folder);
  // Reads this rank's shards out of whatever files hold them. Does not install.
  void Load(const std::string& folder);

 private:
  struct State {
    const char* kind;
    spf_addr address;  // fp32, one shard; 0: this bucket has none
  };
  static std::vector<State> StatesOf(const Bucket& bucket);
  void WaitForPeers();

  Context& c_;
  Optimizer& optimizer_;
};

}  // namespace reference
