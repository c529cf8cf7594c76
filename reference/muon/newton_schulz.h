// newton_schulz.h: which operations replace a matrix by the nearest one whose rows are orthonormal?
//
// Newton-Schulz: X = min(1e15, 1 / (||U|| + eps)) U, then in each step
//   A = X X^T ; B = b A + c A A ; X = a X + B X
// which maps every singular value s to a s + b s^3 + c s^5 and leaves the singular vectors alone. A
// matrix with more rows than columns is contracted over its rows (A = X^T X ; X = a X + X B), so
// that A has the smaller side: the result is the transpose of what its transpose gives. Pure
// functions; optim/orthogonaliser.h launches what they plan.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"

namespace reference {

enum class Coefficients { kSimple, kQuintic, kPolarExpress, kCans, kDeepSeekV4, kCubic5, kAol };

struct NewtonSchulzStep {
  double a = 0, b = 0, c = 0;
};

// The coefficients of each of so many steps. A list that is shorter begins again, or repeats its
// last entry, as its authors say.
std::vector<NewtonSchulzStep> StepsOf(Coefficients type, int32_t steps);

// What the steps make of singular values in [0.01, 1], in exact arithmetic.
struct SingularRange {
  double low = 0, high = 0;
};
SingularRange RangeOf(const std::vector<NewtonSchulzStep>& steps);

// ------------------------------------------------------------------ as launches of named kernels

enum class Operand {
  kInput,    // U: fp32, rows x cols; only read, and only in pieces (WithInput)
  kSquares,  // F64: sum of squares of U; zero it before
  kInverse,  // F64: min(1e15, 1 / (||U|| + eps))
  kX,        // rows x cols, of the plan's dtype
  kY,        // the same
  kGram,     // A: side x side
  kMixed     // B: side x side
};

struct PlannedSpan {
  Operand operand = Operand::kX;
  spf_access access = SPF_READ;
};
struct PlannedLaunch {
  spf_kernel kernel = SPF_K_FILL;
  std::vector<PlannedSpan> spans;
  std::vector<double> scalars;
  // Its last span is this rank's part of a sum: all-reduce it before the next launch.
  bool partial = false;
};

struct NewtonSchulzPlan {
  int64_t rows = 0, cols = 0, side = 0;  // side: of the Gram matrix
  spf_dtype dtype = SPF_F32;             // of kX, kY, kGram, kMixed
  // squares += the sum of squares, once per piece of U; spans kInput and kSquares.
  PlannedLaunch squares;
  // Runs once, after the sum of squares over all pieces of U.
  PlannedLaunch norm;
  // x = U * inverse, once per piece of U; spans kInput, kX and kInverse.
  PlannedLaunch normalise;
  // At most five launches a step.
  std::vector<PlannedLaunch> iterate;
  Operand result = Operand::kX;  // kX or kY: where the last step leaves it
};

NewtonSchulzPlan PlanNewtonSchulz(int64_t rows, int64_t cols,
                                  const std::vector<NewtonSchulzStep>& steps, double eps,
                                  spf_dtype dtype);

// One rank's part of it where several ranks hold shards of rows x cols each, split along dimension
// dim. The split side is contracted, be it the shorter one: so the Gram matrix is a sum over ranks,
// and so is the squared norm; nothing else leaves a rank.
NewtonSchulzPlan PlanNewtonSchulzOfShard(int64_t rows, int64_t cols, int32_t dim,
                                         const std::vector<NewtonSchulzStep>& steps, double eps,
                                         spf_dtype dtype);

}  // namespace reference
