// checkpoint_store.h: how do all ranks of an engine save and load together?
//
// Knows blocks of device memory and the names of what lies in them; nothing of buckets, strategies
// or optimizers. Both calls work in rounds (Round): either all go on or all throw the same
// CheckpointError, with the first rank's reason.
#pragma once
#include <functional>

#include "reference/checkpoint/agreement.h"
#include "reference/checkpoint/checkpoint_folder.h"
#include "reference/checkpoint/save_plan.h"

namespace reference {

// fp32 elements on the device, copied as a whole; what is in no slice is padding and zero.
struct StateBlock {
  struct Part {
    TensorSlice slice;
    int64_t at = 0;  // elements, from the beginning of the block
  };
  spf_addr address = 0;
  int64_t elements = 0;
  std::vector<Part> parts;

  uint64_t bytes() const { return BytesOf(elements); }
  static uint64_t BytesOf(int64_t n) { return static_cast<uint64_t>(n) * sizeof(float); }
};

// Numbers of the host that are the same on all ranks, as tensors I64 [].
using StateNumbers = std::map<std::string, int64_t>;

// What this rank holds, on the host.
struct HeldPiece {
  TensorSlice slice;
  std::string bytes;
};

class CheckpointStore {
 public:
  CheckpointStore(Host& host, spf_stream stream, const std::vector<Communicator>& axes,
                  FileSystem& files)
      : host_(host), stream_(stream), axes_(axes), files_(files) {}

  // Returns when the checkpoint exists: on all ranks or on none. The one before it in this folder
  // is loadable until then. Blocks.
  void Save(const std::string& folder, const std::vector<StateBlock>& blocks,
            const StateNumbers& numbers);
  // Changes blocks and numbers only after every rank has read and verified all of its own. Blocks.
  void Load(const std::string& folder, const std::vector<StateBlock>& blocks,
            StateNumbers& numbers);

 private:
  std::vector<HeldPiece> Fetch(const std::vector<StateBlock>& blocks, const StateNumbers& numbers);
  void Install(const StateBlock& block, const std::vector<std::string>& parts);
  // One round. Returns what the ranks' work answered, by place.
  std::vector<std::string> Round(Agreement& agreement, const std::function<std::string()>& work);

  Host& host_;
  spf_stream stream_;
  const std::vector<Communicator>& axes_;
  FileSystem& files_;
};

}  // namespace reference
