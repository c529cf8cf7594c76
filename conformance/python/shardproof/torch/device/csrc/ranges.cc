#include "ranges.h"

#include <algorithm>
#include <numeric>

#include "device.h"
#include "memory.h"
#include "recorder.h"

namespace shardproof::device {
namespace {

constexpr size_t kMostPieces = 4096;

struct Dimension {
  int64_t size;
  int64_t step;        // bytes
  int64_t other_step;  // bytes, of a second tensor that is walked alongside
};

// Dimensions with more than one place in memory, the largest step first.
std::vector<Dimension> Walk(const at::Tensor& tensor, const at::Tensor* other) {
  std::vector<Dimension> dimensions;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    const int64_t step = tensor.stride(d) * static_cast<int64_t>(tensor.element_size());
    const int64_t other_step =
        other == nullptr ? 0 : other->stride(d) * static_cast<int64_t>(other->element_size());
    const bool stays = other == nullptr && step == 0;
    if (tensor.size(d) != 1 && !stays) dimensions.push_back({tensor.size(d), step, other_step});
  }
  std::stable_sort(dimensions.begin(), dimensions.end(),
                   [](const Dimension& a, const Dimension& b) { return a.step > b.step; });
  return dimensions;
}

// Takes off the innermost dimensions that are contiguous (in both tensors); the elements that they
// hold.
int64_t TakeContiguous(std::vector<Dimension>* dimensions, int64_t size, int64_t other_size) {
  int64_t elements = 1;
  while (!dimensions->empty()) {
    const Dimension& last = dimensions->back();
    if (last.step != elements * size) break;
    if (other_size > 0 && last.other_step != elements * other_size) break;
    elements *= last.size;
    dimensions->pop_back();
  }
  return elements;
}

int64_t Places(const std::vector<Dimension>& dimensions) {
  return std::accumulate(dimensions.begin(), dimensions.end(), int64_t{1},
                         [](int64_t n, const Dimension& d) { return n * d.size; });
}

template <typename Visit>
void ForEachPlace(const std::vector<Dimension>& dimensions, const Visit& visit) {
  std::vector<int64_t> index(dimensions.size(), 0);
  int64_t offset = 0, other = 0;
  for (;;) {
    visit(offset, other);
    size_t d = dimensions.size();
    while (d > 0) {
      const Dimension& dimension = dimensions[d - 1];
      offset += dimension.step;
      other += dimension.other_step;
      if (++index[d - 1] < dimension.size) break;
      offset -= dimension.step * dimension.size;
      other -= dimension.other_step * dimension.size;
      index[--d] = 0;
    }
    if (d == 0) return;
  }
}

const char* Start(const at::Tensor& tensor) {
  return static_cast<const char*>(tensor.const_data_ptr());
}

std::vector<Piece> Merged(std::vector<Piece> pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.start < b.start; });
  std::vector<Piece> merged;
  for (const Piece& piece : pieces) {
    if (!merged.empty() && piece.start <= merged.back().start + merged.back().bytes) {
      const char* end =
          std::max(merged.back().start + merged.back().bytes, piece.start + piece.bytes);
      merged.back().bytes = end - merged.back().start;
    } else {
      merged.push_back(piece);
    }
  }
  return merged;
}

}  // namespace

bool OnDevice(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kDeviceType;
}

std::vector<Piece> Covered(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0) return {};
  const auto size = static_cast<int64_t>(tensor.element_size());
  std::vector<Dimension> dimensions = Walk(tensor, nullptr);
  const int64_t bytes = TakeContiguous(&dimensions, size, 0) * size;
  if (Places(dimensions) > static_cast<int64_t>(kMostPieces)) {
    int64_t last = bytes;
    for (const Dimension& d : dimensions) last += (d.size - 1) * d.step;
    return {{Start(tensor), last}};
  }
  std::vector<Piece> pieces;
  ForEachPlace(dimensions, [&](int64_t at, int64_t) {
    pieces.push_back({Start(tensor) + at, bytes});
  });
  return Merged(std::move(pieces));
}

std::vector<Run> Runs(const at::Tensor& from, const at::Tensor& to) {
  std::vector<Dimension> dimensions = Walk(to, &from);
  const int64_t elements = TakeContiguous(&dimensions, static_cast<int64_t>(to.element_size()),
                                          static_cast<int64_t>(from.element_size()));
  if (Places(dimensions) > static_cast<int64_t>(kMostPieces)) return {};
  std::vector<Run> runs;
  ForEachPlace(dimensions, [&](int64_t at, int64_t other) {
    runs.push_back({Start(from) + other, Start(to) + at, elements});
  });
  return runs;
}

std::string RangeText(const Piece& piece, int access) {
  Hold hold;
  const Block* block = FindBlock(piece.start);
  if (block == nullptr) return "";
  return "[" + std::to_string(block->id) + "," + std::to_string(access) + "," +
         std::to_string(piece.start - block->start) + "," + std::to_string(piece.bytes) + "]";
}

void Ranges::Add(const at::Tensor& tensor, int access) {
  for (const Piece& piece : Covered(tensor)) {
    const auto same = std::find_if(entries_.begin(), entries_.end(),
                                   [&](const Entry& entry) { return entry.piece == piece; });
    if (same != entries_.end()) {
      same->access |= access;
    } else {
      entries_.push_back({piece, access});
    }
  }
}

std::string Ranges::Text() const {
  std::string text;
  for (const Entry& entry : entries_) {
    const std::string one = RangeText(entry.piece, entry.access);
    if (!one.empty()) text += (text.empty() ? "" : ",") + one;
  }
  return text;
}

}  // namespace shardproof::device
