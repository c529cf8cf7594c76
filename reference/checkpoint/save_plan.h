// save_plan.h: which rank writes which elements?
//
// Every rank says what it holds; replicas hold the same. Each element of each tensor gets exactly
// one writer, of the ranks that hold it the one with the least to write so far, so that replicas
// share the work. A pure function: every rank computes the same plan.
#pragma once
#include "reference/checkpoint/tensor.h"

namespace reference {

// A slice that every holder holds whole.
struct SavePart {
  TensorSlice slice;
  std::vector<int32_t> holders;  // ascending
  int32_t writer = 0;
};

using SavePlan = std::vector<SavePart>;  // by tensor and offset

// held: by rank. Throws CheckpointError if a tensor has two dtypes or shapes, if an element is held
// by nobody, or twice by one rank.
SavePlan PlanSave(const std::vector<std::vector<TensorSlice>>& held);

// What a rank holds as text, for the others.
std::string SlicesText(const std::vector<TensorSlice>& slices);
std::vector<TensorSlice> ParseSlices(const std::string& text);

}  // namespace reference
