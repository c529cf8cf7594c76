// checkpoint_folder.h: how does a folder change from one checkpoint to the next, and back into
// tensors?
//
// Shards have the generation in their names, so that a save overwrites nothing that the index
// names. The order is: all ranks' shards; the index; removal of shards that it does not name. What
// dies on the way leaves the previous index and its files, or the new index and all of its files.
#pragma once
#include <map>
#include <string_view>

#include "reference/checkpoint/index.h"

namespace reference {

class CheckpointFolder {
 public:
  CheckpointFolder(FileSystem& files, std::string folder)
      : files_(files), folder_(std::move(folder)) {}

  void Make() { files_.MakeFolder(folder_); }
  // One more than that of the index that is there. Throws CheckpointError if there is one that
  // cannot be read: overwriting it might cost somebody a checkpoint.
  int64_t NextGeneration();

  struct Piece {
    TensorSlice slice;
    std::string_view bytes;
  };
  // Throws CheckpointError.
  StoredFile WriteShard(const std::string& name, const std::vector<Piece>& pieces);
  // Of a save that failed. Does not throw.
  void RemoveShard(const std::string& name);
  // Makes the checkpoint exist, then removes shards of others. One rank only, after the shards of
  // all ranks are complete.
  void Commit(const Index& index);

  static std::string ShardName(int64_t generation, int32_t writer);

 private:
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }
  void RemoveUnnamed(const Index& index);

  FileSystem& files_;
  std::string folder_;
};

// Reads slices, whoever wrote them, and verifies every byte that it hands out.
class CheckpointReader {
 public:
  // Reads the index. Throws CheckpointError.
  CheckpointReader(FileSystem& files, std::string folder);

  uint32_t index_crc() const { return index_crc_; }
  // The slice's elements, packed. Throws CheckpointError naming file and tensor.
  std::string Read(const TensorSlice& slice);

 private:
  [[noreturn]] void Refuse(const std::string& file, const std::string& tensor,
                           const std::string& what) const;
  // A shard whose size and header are those that were written.
  struct Shard {
    uint64_t data_at = 0;  // byte of the file at which the data begins
    std::map<std::string, SafetensorsEntry> entries;
  };
  const Shard& Opened(const std::string& name, const std::string& tensor);
  std::string ReadStored(const std::string& tensor, const TensorFacts& facts,
                         const StoredSlice& stored);

  FileSystem& files_;
  std::string folder_;
  Index index_;
  uint32_t index_crc_ = 0;
  std::map<std::string, Shard> opened_;
};

}  // namespace reference
