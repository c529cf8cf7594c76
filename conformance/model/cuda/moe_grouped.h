// moe_grouped.h: how do the experts of a rank multiply their rows, on a device?
//
// Grouped linear modules of moe_kernels.h, with their shapes, on device pointers. How many rows an
// expert has stands in device memory, which the host does not read: every index looks up the expert
// of its row. Counts that are stale or poisoned, so that they do not make the rows there are
// (ExpertRows::Fits), give NaN as on the CPU and lead nowhere.
#pragma once
#include <vector>

#include "conformance/model/cuda/common.h"
#include "conformance/model/moe_kernels.h"

namespace shardproof::device {

// Where each expert's rows lie. Memory of its own, in the queue's order.
class RowsByExpert {
 public:
  // received.counts is a device pointer, or null.
  RowsByExpert(Queue& queue, const ExpertRows& received, int64_t n_rows);
  int64_t ranks() const { return received_.ranks; }
  int64_t experts() const { return received_.experts; }
  int64_t count() const { return n_rows_; }
  // [ranks * experts + 1]: the first row of each stretch, and n_rows. first[0] is -1 if the counts
  // do not fit; then the rest means nothing.
  const int64_t* first() const { return first_.get(); }
  const int32_t* expert() const {
    return expert_.get();
  }  // [n_rows] local expert of each row; -1: counts do not fit

 private:
  ExpertRows received_;
  int64_t n_rows_;
  Scratch<int64_t> first_;
  Scratch<int32_t> expert_;
};

struct GroupedShape {
  int64_t in = 0, out = 0;
};

// weights [experts, out, in], biases [experts, out] or null. y on the grid `to`.
void GroupedForward(Queue& queue, const Rules& rules, const RowsByExpert& rows, GroupedShape shape,
                    const float* x, const float* weights, const float* biases, Grid to, float* y);
void GroupedDgrad(Queue& queue, const Rules& rules, const RowsByExpert& rows, GroupedShape shape,
                  const float* dy, const float* weights, Grid to, float* dx);
// Targets by local expert; none at all, or without data: not wanted. Experts without rows add
// nothing.
void GroupedWgrad(Queue& queue, const Rules& rules, const RowsByExpert& rows, GroupedShape shape,
                  const float* x, const float* dy, Grid dy_grid,
                  const std::vector<GradTarget>& weights, const std::vector<GradTarget>& biases);

// SwiGLU of x [rows, 2 ffn], times the row's probability; y [rows, ffn].
void GatedSwigluForward(Queue& queue, const Rules& rules, int64_t rows, int64_t ffn, const float* x,
                        const float* row_probs, float* y);
void GatedSwigluDgrad(Queue& queue, const Rules& rules, int64_t rows, int64_t ffn, const float* x,
                      const float* row_probs, const float* dy, float* dx, float* drow_probs);

}  // namespace shardproof::device
