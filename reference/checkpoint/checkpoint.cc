#include "reference/checkpoint/checkpoint.h"

#include <algorithm>

namespace reference {
namespace {

constexpr const char* kUpdates = "updates";

// A parameter of which the ranks of tp hold shards is saved as what it is in all: elements of a
// shard that are next to each other in the whole are a part each.
void AddParts(const spf_param& param, const Communicator& tp, const std::string& kind,
              const BucketSlice& s, std::vector<StateBlock::Part>& parts) {
  TensorFacts whole{"F32", {param.shape, param.shape + param.n_dim}};
  int64_t ranks = 1, rank = 0, run = param.numel;
  if (param.tp_dim >= 0) {
    ranks = tp.size(), rank = tp.rank;
    run = 1;
    for (int32_t i = param.tp_dim; i < param.n_dim; ++i) run *= param.shape[i];
    At(whole.shape, param.tp_dim) *= ranks;
  }
  for (int64_t done = 0; done < s.count;) {
    const int64_t at = s.param_offset + done, within = at % run;
    const int64_t count = std::min(run - within, s.count - done);
    const int64_t in_whole = (at / run * ranks + rank) * run + within;
    parts.push_back({{kind + "/" + param.name, whole, in_whole, count}, s.range_offset + done});
    done += count;
  }
}

StateBlock BlockOf(const Context& c, const Bucket& bucket, const std::string& kind,
                   spf_addr address) {
  StateBlock block{address, bucket.shard_size(), {}};
  for (const BucketSlice& s : bucket.MySlices())
    AddParts(c.host.model().params[s.param], c.groups.tp, kind, s, block.parts);
  return block;
}

}  // namespace

std::vector<StateBlock> Checkpoint::Blocks() const {
  std::vector<StateBlock> blocks;
  for (const Bucket& b : c_.buckets) {
    if (b.shard_size() == 0) continue;
    blocks.push_back(BlockOf(c_, b, "weight", b.main));
    if (b.momentum != 0) blocks.push_back(BlockOf(c_, b, "momentum", b.momentum));
    if (b.exp_avg == 0) continue;
    blocks.push_back(BlockOf(c_, b, "exp_avg", b.exp_avg));
    blocks.push_back(BlockOf(c_, b, "exp_avg_sq", b.exp_avg_sq));
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
