// safetensors.h: what do the bytes of one file look like?
//
// The public safetensors format, so that other programs can read a checkpoint: the length of the
// header (8 bytes, little-endian), the header, the data.
//     {"__metadata__": {text: text, ...}, key: {"dtype", "shape", "data_offsets": [begin, end]},
//     ...}
// Offsets are bytes from the beginning of the data; tensors follow each other without gaps. The
// header is filled up with spaces so that the data begins at a multiple of 8 bytes.
#pragma once
#include <map>

#include "reference/checkpoint/file_system.h"
#include "reference/checkpoint/tensor.h"

namespace reference {

struct SafetensorsEntry {
  std::string key;
  TensorFacts facts;
  uint64_t begin = 0, end = 0;  // bytes, in the data
  bool operator==(const SafetensorsEntry&) const = default;
};

// Everything before the data: length and header. Sets begin and end, in the order given.
std::string SafetensorsHeader(const std::map<std::string, std::string>& metadata,
                              std::vector<SafetensorsEntry>& entries);

// The bytes before the data. Throws CheckpointError.
std::string ReadSafetensorsHeader(FileSystem& files, const std::string& path);
// The tensors by key. Checks that they fill data_bytes without gaps. Throws CheckpointError naming
// path.
std::map<std::string, SafetensorsEntry> ParseSafetensorsHeader(const std::string& path,
                                                               const std::string& header,
                                                               uint64_t data_bytes);

}  // namespace reference
