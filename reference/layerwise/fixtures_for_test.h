// fixtures_for_test.h: which layers do tests deal? Five linear ones, 80-48-32-24-16-10, with
// biases, in model order.
#pragma once
#include <array>
#include <string>

#include "reference/layerwise/ownership.h"

namespace reference {

struct NamedShape {
  int32_t param;
  const char* name;
  int64_t rows, cols;  // rows 0: a vector of cols elements

  ParamFacts facts() const {
    ParamFacts facts;
    facts.param = param;
    facts.numel = rows == 0 ? cols : rows * cols;
    facts.rows = rows;
    facts.cols = rows == 0 ? 0 : cols;
    return facts;
  }
};

constexpr std::array<NamedShape, 10> kFiveLinear{{{0, "w1", 48, 80},
                                                  {1, "b1", 0, 48},
                                                  {2, "w2", 32, 48},
                                                  {3, "b2", 0, 32},
                                                  {4, "w3", 24, 32},
                                                  {5, "b3", 0, 24},
                                                  {6, "w4", 16, 24},
                                                  {7, "b4", 0, 16},
                                                  {8, "w5", 10, 16},
                                                  {9, "b5", 0, 10}}};

inline std::vector<ParamGroup> FiveLinearGroups() {
  std::vector<ParamGroup> groups{{"matrices", {}}, {"vectors", {}}};
  for (const NamedShape& shape : kFiveLinear)
    groups[shape.rows == 0 ? 1 : 0].params.push_back(shape.facts());
  return groups;
}

}  // namespace reference
