// parameters.h: who makes sure that parameters are there before a node reads them?
#pragma once
#include <cstdint>

namespace reference {

class Parameters {
 public:
  virtual ~Parameters() = default;
  // What is enqueued on compute from now on may read the full parameters of this bucket group.
  virtual void Need(int32_t group) = 0;
};

}  // namespace reference
