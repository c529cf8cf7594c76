#include "conformance/model/cuda/moe_grouped.h"

#include <limits>

namespace shardproof::device {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// ExpertRows::Fits and where each stretch begins. One index: a stretch begins where the one before
// ends.
void FindStretches(Queue& queue, const ExpertRows& received, int64_t n_rows, int64_t* first) {
  const int64_t stretches = received.ranks * received.experts, uniform = received.uniform;
  const int64_t* counts = received.counts;
  ForEach(queue, "expert_stretches", 1, [=] SHARDPROOF_KERNEL(int64_t) {
    int64_t left = n_rows;
    bool fits = true;
    for (int64_t i = 0; i < stretches && fits; ++i) {
      const int64_t count = counts == nullptr ? uniform : counts[i];
      fits = count >= 0 && count <= left;
      first[i] = n_rows - left;
      if (fits) left -= count;
    }
    first[stretches] = n_rows;
    if (!fits || left != 0) first[0] = -1;
  });
}

void FindExperts(Queue& queue, const ExpertRows& received, int64_t n_rows, const int64_t* first,
                 int32_t* expert) {
  const int64_t stretches = received.ranks * received.experts, experts = received.experts;
  ForEach(queue, "expert_of_row", n_rows, [=] SHARDPROOF_KERNEL(int64_t row) {
    int64_t low = 0, high = stretches;  // first[low] <= row < first[high]
    while (first[0] == 0 && high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      if (first[middle] <= row) {
        low = middle;
      } else {
        high = middle;
      }
    }
    expert[row] = first[0] == 0 ? static_cast<int32_t>(low % experts) : -1;
  });
}

// What an expert's rows add to its weight or bias: of each source rank's stretch apart, as on the
// CPU, because a bf16 gradient may round in between.
struct ExpertGrad {
  Rules rules;
  GradTarget target;
  const int64_t* first = nullptr;
  int64_t ranks = 0, experts = 0, expert = 0;
  const float *x = nullptr, *dy = nullptr;  // [rows, in], [rows, out]
  int64_t in = 0, out = 0;
  bool of_bias = false;  // x is not read

  SHARDPROOF_KERNEL void AddAt(int64_t i) const {
    if (first[0] < 0) return AddGradAt(rules, target, i, kNaN);
    const int64_t column = of_bias ? i : i / in;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t begin = first[rank * experts + expert],
                    end = first[rank * experts + expert + 1];
      if (begin == end) continue;
      float sum = 0;
      for (int64_t row = begin; row < end; ++row) {
        const float d = dy[row * out + column];
        sum = sum + (of_bias ? d : d * x[row * in + i % in]);
      }
      AddGradAt(rules, target, i, sum);
    }
  }
};

void AddToExpert(Queue& queue, const char* name, const ExpertGrad& of, int64_t numel) {
  const ExpertGrad grad = of;
  ForEach(queue, name, numel, [=] SHARDPROOF_KERNEL(int64_t i) { grad.AddAt(i); });
}

void AddToExperts(Queue& queue, const char* name, ExpertGrad grad,
                  const std::vector<GradTarget>& targets, int64_t numel) {
  for (size_t e = 0; e < targets.size(); ++e) {
    if (targets[e].data == nullptr) continue;
    grad.expert = static_cast<int64_t>(e);
    grad.target = targets[e];
    AddToExpert(queue, name, grad, numel);
  }
}

}  // namespace

RowsByExpert::RowsByExpert(Queue& queue, const ExpertRows& received, int64_t n_rows)
    : received_(received),
      n_rows_(n_rows),
      first_(queue, received.ranks * received.experts + 1),
      expert_(queue, n_rows) {
  FindStretches(queue, received, n_rows, first_.get());
  FindExperts(queue, received, n_rows, first_.get(), expert_.get());
}

void GroupedForward(Queue& queue, const Rules& rules, const RowsByExpert& rows, GroupedShape shape,
                    const float* x, const float* weights, const float* biases, Grid to, float* y) {
  const Rules r = rules;
  const int64_t in = shape.in, out = shape.out;
  const int32_t* expert = rows.expert();
  ForEach(queue, "grouped_forward", rows.count() * out, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t e = expert[i / out], column = i % out;
    if (e < 0) {
      y[i] = kNaN;
      return;
    }
    const float *row = x + i / out * in, *weight = weights + (e * out + column) * in;
    float sum = 0;
    for (int64_t l = 0; l < in; ++l) sum = sum + row[l] * weight[l];
    if (biases != nullptr) sum = sum + biases[e * out + column];
    y[i] = r.Rounded(to, sum);
  });
}

void GroupedDgrad(Queue& queue, const Rules& rules, const RowsByExpert& rows, GroupedShape shape,
                  const float* dy, const float* weights, Grid to, float* dx) {
  const Rules r = rules;
  const Grid grid = rules.Scaled(to);
  const int64_t in = shape.in, out = shape.out;
  const int32_t* expert = rows.expert();
  ForEach(queue, "grouped_dgrad", rows.count() * in, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t e = expert[i / in];
    if (e < 0) {
      dx[i] = kNaN;
      return;
    }
    const float *row = dy + i / in * out, *weight = weights + e * out * in + i % in;
    float sum = 0;
    for (int64_t o = 0; o < out; ++o) sum = sum + row[o] * weight[o * in];
    dx[i] = r.Rounded(grid, sum);
  });
}

void GroupedWgrad(Queue& queue, const Rules& rules, const RowsByExpert& rows, GroupedShape shape,
                  const float* x, const float* dy, Grid dy_grid,
                  const std::vector<GradTarget>& weights, const std::vector<GradTarget>& biases) {
  const GradOperand x_operand(queue, rules, x, weights.empty() ? 0 : rows.count() * shape.in,
                              grids::kActivation);
  const GradOperand dy_operand(queue, rules, dy, rows.count() * shape.out, rules.Scaled(dy_grid));
  ExpertGrad grad;
  grad.rules = rules;
  grad.first = rows.first();
  grad.ranks = rows.ranks();
  grad.experts = rows.experts();
  grad.x = x_operand.get();
  grad.dy = dy_operand.get();
  grad.in = shape.in;
  grad.out = shape.out;
  AddToExperts(queue, "grouped_wgrad", grad, weights, shape.in * shape.out);
  grad.of_bias = true;
  AddToExperts(queue, "grouped_bias_grad", grad, biases, shape.out);
}

}  // namespace shardproof::device
