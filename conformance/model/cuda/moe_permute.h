// moe_permute.h: how do tokens become rows by expert, and rows tokens again, on a device?
//
// Permutation of moe_kernels.h, with its shapes and rules, on device pointers. An index that is
// stale or poisoned leads nowhere outside a buffer: what is no expert counts as dropped, and no
// expert's rows end beyond n_rows.
#pragma once
#include "conformance/model/cuda/common.h"
#include "conformance/model/moe_kernels.h"

namespace shardproof::device {

// Which row each choice has, and which choice each row. Memory of its own, in the queue's order.
class ChoiceRows {
 public:
  ChoiceRows(Queue& queue, const RouterRule& rule, const int32_t* index, int64_t n_rows);
  const int64_t* row_of() const {
    return row_of_.get();
  }  // [T, k]; -1: dropped, or not below n_rows
  const int64_t* choice_of() const { return choice_of_.get(); }  // [n_rows]; -1: padding

 private:
  Scratch<int64_t> row_of_, choice_of_;
};

// rows [n_rows, width], row_probs [n_rows].
void PermuteForward(Queue& queue, const RouterRule& rule, int64_t n_rows, const float* x,
                    const float* probs, const int32_t* index, float* rows, float* row_probs);
// dx is added to.
void PermuteDgrad(Queue& queue, const RouterRule& rule, int64_t n_rows, const int32_t* index,
                  const float* drows, const float* drow_probs, float* dx, float* dprobs);
// shared may be null.
void UnpermuteForward(Queue& queue, const Rules& rules, const RouterRule& rule, int64_t n_rows,
                      const float* rows, const int32_t* index, const float* shared,
                      const float* residual, float* out);
struct UnpermuteGrads {
  float *rows = nullptr, *shared = nullptr, *residual = nullptr;  // shared may be null
  bool add_residual = false;
};
void UnpermuteDgrad(Queue& queue, const Rules& rules, const RouterRule& rule, int64_t n_rows,
                    const int32_t* index, const float* dout, const UnpermuteGrads& grads);

}  // namespace shardproof::device
