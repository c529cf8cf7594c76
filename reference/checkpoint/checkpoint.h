// checkpoint.h: how do main weights and optimizer state get to disk and back?
//
// By logical name: weight/NAME, exp_avg/NAME, exp_avg_sq/NAME for a parameter NAME, and the number
// "updates" (Adam's t). A weight's checkpoint loads into an engine of any strategy and size.
#pragma once
#include "reference/checkpoint/checkpoint_store.h"
#include "reference/optim/optimizer.h"

namespace reference {

class Checkpoint {
 public:
  Checkpoint(Context& context, Optimizer& optimizer) : c_(context), optimizer_(optimizer) {}

  // Each rank writes what it is the writer of. Returns when the checkpoint exists: a rank may load
  // at once what its peers have saved. Throws CheckpointError, on all ranks or on none.
  void Save(const std::string& folder);
  // Reads this rank's shards out of whatever files hold them. Does not install them as model
  // weights. Throws CheckpointError on all ranks or on none, and then nothing has changed.
  void Load(const std::string& folder);

 private:
  std::vector<StateBlock> Blocks() const;
  CheckpointStore Store();

  Context& c_;
  Optimizer& optimizer_;
  PosixFileSystem files_;
};

}  // namespace reference
