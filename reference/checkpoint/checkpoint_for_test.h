// checkpoint_for_test.h: how does a test save and read a whole checkpoint without any engine?
#pragma once
#include "reference/checkpoint/checkpoint_folder.h"
#include "reference/checkpoint/checksum.h"

namespace reference {

constexpr int64_t kTestShards = 3, kTestElements = 6;
const TensorFacts kTestTensor{"F32", {kTestElements}};

// What every rank of an engine does, one after the other: a tensor "w" of equal values in three
// shards, and a number "updates" in the first.
inline void SaveForTest(FileSystem& files, const std::string& folder, float value) {
  CheckpointFolder out(files, folder);
  out.Make();
  Index index;
  index.generation = out.NextGeneration();
  const auto updates = static_cast<int64_t>(value);
  const std::string number(reinterpret_cast<const char*>(&updates), sizeof updates);
  const std::vector<float> values(kTestElements / kTestShards, value);
  const std::string bytes(reinterpret_cast<const char*>(values.data()),
                          values.size() * sizeof(float));
  for (int64_t shard = 0; shard < kTestShards; ++shard) {
    const std::string file =
        CheckpointFolder::ShardName(index.generation, static_cast<int32_t>(shard));
    const auto count = static_cast<int64_t>(values.size());
    std::vector<CheckpointFolder::Piece> pieces{{{"w", kTestTensor, shard * count, count}, bytes}};
    if (shard == 0) pieces.push_back({{"updates", {"I64", {}}, 0, 1}, number});
    index.files[file] = out.WriteShard(file, pieces);
    for (const CheckpointFolder::Piece& piece : pieces) {
      StoredTensor& tensor = index.tensors[piece.slice.tensor];
      tensor.facts = piece.slice.facts;
      tensor.slices.push_back(
          {file, KeyOf(piece.slice), piece.slice.offset, piece.slice.count, Crc32(piece.bytes)});
    }
  }
  out.Commit(index);
}

// The value of all elements. Throws CheckpointError; std::logic_error if elements differ, which is
// what must never happen.
inline float LoadForTest(FileSystem& files, const std::string& folder) {
  CheckpointReader in(files, folder);
  const std::string bytes = in.Read({"w", kTestTensor, 0, kTestElements});
  const std::string number = in.Read({"updates", {"I64", {}}, 0, 1});
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  for (int64_t i = 0; i < kTestElements; ++i) {
    if (values[i] != values[0]) throw std::logic_error("half a checkpoint was loaded");
  }
  if (*reinterpret_cast<const int64_t*>(number.data()) != static_cast<int64_t>(values[0]))
    throw std::logic_error("tensors of two checkpoints were loaded");
  return values[0];
}

}  // namespace reference
