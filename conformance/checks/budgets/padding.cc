#include "conformance/checks/budgets/padding.h"

#include <algorithm>
#include <numeric>

namespace shardproof {

namespace {

constexpr int64_t kElements = 64, kBucket = 128;

int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// PyTorch FSDP2: as many rows for each rank.
int64_t OfRows(const std::vector<Piece>& pieces, int64_t ranks) {
  int64_t padding = 0;
  for (const Piece& piece : pieces) {
    const bool whole = piece.bytes % piece.row == 0;
    padding += whole ? RoundUp(piece.bytes, piece.row * ranks) - piece.bytes : piece.row * ranks;
  }
  return padding;
}

// Megatron-LM's distributed optimizer.
int64_t OfElements(const std::vector<Piece>& pieces, int64_t ranks, int64_t alignment) {
  int64_t bytes = 0, placed = 0, width = 1;
  for (const Piece& piece : pieces) {
    bytes += piece.bytes;
    placed += RoundUp(piece.bytes, kElements * piece.width);
    width = std::max(width, piece.width);
  }
  return std::max(RoundUp(placed, std::lcm(ranks, kBucket) * width),
                  RoundUp(placed, ranks * alignment)) -
         bytes;
}

// Megatron-FSDP: shards begin where rows of every parameter do.
int64_t OfFactor(const std::vector<Piece>& pieces, int64_t ranks) {
  int64_t bytes = 0, factor = 1;
  for (const Piece& piece : pieces) bytes += piece.bytes;
  for (const Piece& piece : pieces) {
    const int64_t both = std::lcm(factor, piece.row);
    factor = both <= bytes ? both : std::max(factor, piece.row);
  }
  int64_t placed = 0;  // what is smaller than the factor fills gaps
  for (const Piece& piece : pieces)
    placed += piece.bytes < factor ? piece.bytes : RoundUp(piece.bytes, factor);
  return RoundUp(placed, ranks * factor) - bytes;
}

}  // namespace

int64_t MostPadding(const std::vector<Piece>& pieces, int64_t ranks, int64_t alignment) {
  return std::max(
      {OfRows(pieces, ranks), OfElements(pieces, ranks, alignment), OfFactor(pieces, ranks)});
}

}  // namespace shardproof
