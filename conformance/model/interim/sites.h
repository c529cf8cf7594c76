// sites.h: on which grids do the gradients of a node lie?
//
// The grids are chosen once per config from the sizes of the gradients of one calibration sample at the initial
// weights, by comparing exact powers of two: a pure function of the config, the same on every machine.
#pragma once
#include <cstdint>

#include "conformance/model/interim/quant.h"

namespace shardproof {

struct Site {
  Grid upstream{-8, 127};     // the gradient of the node's output, as operand of dgrad and wgrad
  Grid passed{-8, 1023};      // what is added to the residual stream's gradient
  Grid dot{-8, 127};          // norm: operand of the inner product
  Grid dprob{-8, 127}, dscore{-8, 127};  // attention
};

// The smallest exponent e with 2^e * limit >= factor * root mean square; at least -24.
int32_t FitExponent(double sum_of_squares, int64_t n, double factor, double limit);

}  // namespace shardproof
