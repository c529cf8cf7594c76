#include "reference/checkpoint/checkpoint.h"

namespace reference {
namespace {

constexpr const char* kUpdates = "updates";

StateBlock BlockOf(const spf_model& model, const Bucket& bucket, const std::string& kind,
                   spf_addr address) {
  StateBlock block{address, bucket.shard_size(), {}};
  for (const BucketSlice& s : bucket.MySlices()) {
    const spf_param& param = model.params[s.param];
    const TensorFacts facts{"F32", {param.shape, param.shape + param.n_dim}};
    block.parts.push_back(
        {{kind + "/" + param.name, facts, s.param_offset, s.count}, s.range_offset});
  }
  return block;
}

}  // namespace

std::vector<StateBlock> Checkpoint::Blocks() const {
  std::vector<StateBlock> blocks;
  const spf_model& model = c_.host.model();
  for (const Bucket& b : c_.buckets) {
    if (b.shard_size() == 0) continue;
    blocks.push_back(BlockOf(model, b, "weight", b.main));
    if (b.momentum != 0) blocks.push_back(BlockOf(model, b, "momentum", b.momentum));
    if (b.exp_avg == 0) continue;
    blocks.push_back(BlockOf(model, b, "exp_avg", b.exp_avg));
    blocks.push_back(BlockOf(model, b, "exp_avg_sq", b.exp_avg_sq));
  }
  return blocks;
}

CheckpointStore Checkpoint::Store() {
  for (const Communicator& axis : c_.groups.all) {
    if (!axis) throw CheckpointError("checkpoints need group world, which was not provided");
  }
  return {c_.host, c_.streams.compute, c_.groups.all, files_};
}

void Checkpoint::Save(const std::string& folder) {
  Store().Save(folder, Blocks(), {{kUpdates, optimizer_.updates()}});
}

void Checkpoint::Load(const std::string& folder) {
  StateNumbers numbers{{kUpdates, 0}};
  Store().Load(folder, Blocks(), numbers);
  optimizer_.set_updates(numbers.at(kUpdates));
}

}  // namespace reference
