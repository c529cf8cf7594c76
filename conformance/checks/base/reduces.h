// reduces.h: are gradients of an instance summed over several ranks at all?
#pragma once
#include <algorithm>

#include "conformance/cases/case.h"

namespace shardproof {

// How many ranks share a parameter, dense or an expert: experts may be on more of them (etp < tp).
inline int32_t MostRanksOfAParameter(const InstanceSpec& spec) {
  const bool experts = spec.model.experts || spec.model.moe.experts > 0;
  const int32_t expert = experts ? spec.span / (spec.etp * spec.ep * spec.pp) : 1;
  return std::max(DpCpSize(spec), expert);
}

}  // namespace shardproof
