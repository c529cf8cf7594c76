#include "reference/checkpoint/tensor.h"

#include "reference/checkpoint/file_system.h"

namespace reference {

int64_t TensorFacts::numel() const {
  int64_t product = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) return -1;
  }
  return product;
}

uint64_t TensorFacts::element_bytes() const {
  if (dtype == "U8") return 1;
  if (dtype == "BF16" || dtype == "F16") return 2;
  if (dtype == "F32" || dtype == "I32") return 4;
  if (dtype == "F64" || dtype == "I64") return 8;
  throw CheckpointError("dtype " + dtype + " is not one of U8, BF16, F16, F32, I32, F64, I64");
}

std::string TensorFacts::Text() const {
  std::string text;
  for (int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return dtype + " [" + text + "]";
}

std::string TensorSlice::Text() const {
  return "elements " + std::to_string(offset) + " to " + std::to_string(offset + count);
}

}  // namespace reference
