// tensor.h: what is one tensor of a checkpoint, whoever holds which part of it?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace reference {

// A logical tensor: dtype as safetensors writes it (F32, I64), shape of the whole. A number has
// shape [].
struct TensorFacts {
  std::string dtype;
  std::vector<int64_t> shape;

  int64_t numel() const;           // -1 if it is no shape: a negative extent, or more than 2^63
  uint64_t element_bytes() const;  // throws CheckpointError on a dtype that is not known
  std::string Text() const;        // F32 [4, 8]
  bool operator==(const TensorFacts&) const = default;
};

// Elements [offset, offset + count) of a tensor, in row-major order of the whole.
struct TensorSlice {
  std::string tensor;  // the name, unique in the whole world
  TensorFacts facts;
  int64_t offset = 0, count = 0;

  std::string Text() const;  // elements 3 to 7
  bool operator==(const TensorSlice&) const = default;
};

}  // namespace reference
