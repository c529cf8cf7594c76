#include "reference/core/layout.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

namespace reference {

bool RowsFit(int64_t a, int64_t b) { return a % b == 0 || b % a == 0; }

std::vector<BucketSlice> BucketLayout::Slices(int64_t begin, int64_t count) const {
  std::vector<BucketSlice> slices;
  for (const BucketItem& item : items) {
    const int64_t from = std::max(begin, item.offset);
    const int64_t to = std::min(begin + count, item.offset + item.numel);
    if (from < to) slices.push_back({item.param, from - item.offset, from - begin, to - from});
  }
  return slices;
}

BucketLayout LayOut(std::vector<ParamShape> params, int32_t shards) {
  std::ranges::stable_sort(params, std::greater{}, &ParamShape::row);
  BucketLayout layout;
  layout.shards = shards;
  int64_t end = 0;
  for (const ParamShape& param : params) {
    if (!RowsFit(params.front().row, param.row) || end % param.row != 0) {
      throw std::invalid_argument("a row of " + std::to_string(param.row) +
                                  " elements does not fit into a bucket of rows of " +
                                  std::to_string(params.front().row));
    }
    layout.items.push_back({param.param, end, param.numel});
    end += param.numel;
  }
  const int64_t multiple = shards == 1 || params.empty() ? 1 : shards * params.front().row;
  layout.size = (end + multiple - 1) / multiple * multiple;
  return layout;
}

}  // namespace reference
