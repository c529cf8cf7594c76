// index.h: what makes a set of files a checkpoint?
//
// checkpoint.json names every tensor and where its elements lie. A checkpoint exists exactly when
// its index does (checkpoint_folder.h).
//     {"checkpoint": {"format": "reference-checkpoint", "version": 2, "generation": n,
//                     "files":   {file: {"bytes", "header_crc32"}},
//                     "tensors": {name: {"dtype", "shape", "slices": [{"file", "key", "offset",
//                                                                      "count", "crc32"}]}}},
//      "crc32": of the text of "checkpoint"}
// offset and count are elements of the logical tensor; the slices of a tensor are sorted and cover
// it once. crc32 is of a slice's bytes. Nothing here knows of ranks, buckets or strategies, so any
// number of ranks can load what any other number has saved.
#pragma once
#include <map>

#include "reference/checkpoint/safetensors.h"

namespace reference {

constexpr const char* kIndexName = "checkpoint.json";

struct StoredSlice {
  std::string file, key;
  int64_t offset = 0, count = 0;
  uint32_t crc = 0;
  bool operator==(const StoredSlice&) const = default;
};

struct StoredTensor {
  TensorFacts facts;
  std::vector<StoredSlice> slices;
  bool operator==(const StoredTensor&) const = default;
};

struct StoredFile {
  uint64_t bytes = 0;
  uint32_t header_crc = 0;
  bool operator==(const StoredFile&) const = default;
};

struct Index {
  int64_t generation = 0;  // counts the saves into this folder
  std::map<std::string, StoredFile> files;
  std::map<std::string, StoredTensor> tensors;
  bool operator==(const Index&) const = default;
};

std::string IndexText(const Index& index);
// path: for messages. Throws CheckpointError on a text that IndexText did not write.
Index ParseIndex(const std::string& path, const std::string& text);

// The key of a slice in its file: the tensor's name, with [begin:end] if it is not the whole.
std::string KeyOf(const TensorSlice& slice);

}  // namespace reference
