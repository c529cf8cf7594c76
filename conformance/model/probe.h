// probe.h: was every sum really exact, and how much was clamped?
//
// An observer that the oracle may hand to compute(). Not thread-safe: one per sequential run.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/model/quant.h"

namespace shardproof {

struct Probe {
  bool check_bounds = false;
  int64_t quantised = 0, saturated = 0;  // elements that passed a quantiser; that it clamped

  // Throws std::logic_error, naming the sum, unless every element is a multiple of the grid's
  // quantum.
  void CheckOnGrid(const char* sum, const float* x, int64_t n, Grid grid) const;
  // Throws unless the sum of magnitudes, in quanta, is below 2^24: then every partial sum in every
  // order is exact.
  void CheckTotal(const char* sum, double quanta);
  // Adds magnitudes to a parameter's gradient (over all nodes, samples and ranks of a step) and
  // checks the totals. Narrow: the limit is 2^8.
  void AddToParam(const std::string& name, const std::vector<double>& magnitudes, int32_t quantum_e,
                  bool narrow);
  void NextStep() { params_.clear(); }
  double largest = 0;  // of all totals so far, in quanta

 private:
  struct Total {
    int32_t quantum_e = 0;
    std::vector<double> magnitudes;
  };
  std::map<std::string, Total> params_;
};

}  // namespace shardproof
