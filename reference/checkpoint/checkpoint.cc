#include "reference/checkpoint/checkpoint.h"

#include <algorithm>

#include "reference/checkpoint/shard_file.h"
#include "reference/fsdp/collectives.h"

namespace reference {

std::vector<Checkpoint::State> Checkpoint::StatesOf(const Bucket& b) {
  std::vector<State> states{{"weight", b.main}};
  if (b.exp_avg != 0) {
    states.push_back({"exp_avg", b.exp_avg});
    states.push_back({"exp_avg_sq", b.exp_avg_sq});
  }
  return states;
}

void Checkpoint::Save(const std::string& folder) {
  const spf_stream stream = c_.streams.compute;
  std::vector<ShardPiece> pieces;
  for (const Bucket& b : c_.buckets) {
    const uint64_t bytes = b.Bytes(b.shard_size(), SPF_F32);
    spf_addr pinned = c_.host.Alloc(stream, bytes, spf::For(SPF_FOR_CHECKPOINT), SPF_PINNED);
    for (const State& state : StatesOf(b)) {
      c_.host.Copy(stream, pinned, state.address, bytes);
      c_.host.Sync(stream);
      const float* values =
          c_.host.Touch<float>(pinned, static_cast<uint64_t>(b.shard_size()), SPF_READ);
      for (const BucketSlice& s : b.MySlices()) {
        pieces.push_back({state.kind,
                          c_.host.model().params[s.param].name,
                          s.param_offset,
                          {values + s.range_offset, values + s.range_offset + s.count}});
      }
    }
    c_.host.Free(stream, pinned);
  }
  const int32_t me = c_.groups.dp_cp.members[static_cast<size_t>(c_.groups.dp_cp.rank)];
  WriteShardFile(folder, me, optimizer_.updates(), pieces);
  WaitForPeers();
}

// An all-reduce of nothing: it completes when every member has come here.
void Checkpoint::WaitForPeers() {
  const spf_stream stream = c_.streams.compute;
  const spf_label label = spf::For(SPF_FOR_CHECKPOINT);
  spf_addr token = c_.host.Alloc(stream, 8, label);
  c_.host.Fill(stream, token, 1, SPF_F64, 0);
  auto meet = [&](const Communicator& peers) {
    if (!peers) return;
    CollectiveBatch batch(c_.host, peers, stream);
    batch.AllReduce(SPF_F64, SPF_SUM, token, 1, label);
    batch.Issue();
  };
  meet(c_.groups.dp_cp);
  if (c_.groups.expert) {
    meet(c_.groups.expert->reduce);
    meet(c_.groups.expert->outer);
  }
  c_.host.Free(stream, token);
  c_.host.Sync(stream);
}

void Checkpoint::Load(const std::string& folder) {
  const spf_stream stream = c_.streams.compute;
  const ShardFolder files(folder);
  for (const Bucket& b : c_.buckets) {
    const auto elements = static_cast<uint64_t>(b.shard_size());
    for (const State& state : StatesOf(b)) {
      spf_addr pinned =
          c_.host.Alloc(stream, elements * sizeof(float), spf::For(SPF_FOR_CHECKPOINT), SPF_PINNED);
      float* values = c_.host.Touch<float>(pinned, elements, SPF_WRITE);
      std::fill(values, values + elements, 0.0F);
      for (const BucketSlice& s : b.MySlices()) {
        files.Read(state.kind, c_.host.model().params[s.param].name, s.param_offset, s.count,
                   values + s.range_offset);
      }
      c_.host.Copy(stream, state.address, pinned, elements * sizeof(float));
      c_.host.Sync(stream);
      c_.host.Free(stream, pinned);
    }
  }
  optimizer_.set_updates(files.updates());
}

}  // namespace reference
