// reduce.h: how are sums and maxima of rows and columns computed on a device?
//
// In two steps: kParts indices a row or column, each over every kParts-th element, so that
// neighbours read neighbouring memory; then one index over the parts. Sums are exact, so that their
// order changes no bit (NUMERICS.md).
#pragma once
#include "conformance/cuda/for_each.h"
#include "conformance/cuda/queue.h"

namespace shardproof::device {

inline constexpr int64_t kParts = 32;

// sums[row] = sum of term(row, column) over columns.
template <class Term>
void RowSums(Queue& queue, const char* name, int64_t rows, int64_t columns, Term term,
             float* sums) {
  const Scratch<float> scratch(queue, rows * kParts);
  float* parts = scratch.get();
  ForEach(queue, name, rows * kParts, [=] SHARDPROOF_KERNEL(int64_t i) {
    float sum = 0;
    for (int64_t column = i % kParts; column < columns; column += kParts)
      sum = sum + term(i / kParts, column);
    parts[i] = sum;
  });
  ForEach(queue, name, rows, [=] SHARDPROOF_KERNEL(int64_t row) {
    float sum = 0;
    for (int64_t part = 0; part < kParts; ++part) sum = sum + parts[row * kParts + part];
    sums[row] = sum;
  });
}

// sums[column] = sum of term(row, column) over rows.
template <class Term>
void ColumnSums(Queue& queue, const char* name, int64_t rows, int64_t columns, Term term,
                float* sums) {
  const Scratch<float> scratch(queue, kParts * columns);
  float* parts = scratch.get();
  ForEach(queue, name, kParts * columns, [=] SHARDPROOF_KERNEL(int64_t i) {
    float sum = 0;
    for (int64_t row = i / columns; row < rows; row += kParts) sum = sum + term(row, i % columns);
    parts[i] = sum;
  });
  ForEach(queue, name, columns, [=] SHARDPROOF_KERNEL(int64_t column) {
    float sum = 0;
    for (int64_t part = 0; part < kParts; ++part) sum = sum + parts[part * columns + column];
    sums[column] = sum;
  });
}

// tops[row] = the largest term(row, column) over columns; at least one. A NaN may or may not show:
// sum something of it.
template <class Term>
void RowMaxima(Queue& queue, const char* name, int64_t rows, int64_t columns, Term term,
               float* tops) {
  const int64_t used = columns < kParts ? columns : kParts;
  const Scratch<float> scratch(queue, rows * used);
  float* parts = scratch.get();
  ForEach(queue, name, rows * used, [=] SHARDPROOF_KERNEL(int64_t i) {
    float top = term(i / used, i % used);
    for (int64_t column = i % used + used; column < columns; column += used) {
      const float x = term(i / used, column);
      top = x > top ? x : top;
    }
    parts[i] = top;
  });
  ForEach(queue, name, rows, [=] SHARDPROOF_KERNEL(int64_t row) {
    float top = parts[row * used];
    for (int64_t part = 1; part < used; ++part)
      top = parts[row * used + part] > top ? parts[row * used + part] : top;
    tops[row] = top;
  });
}

}  // namespace shardproof::device
