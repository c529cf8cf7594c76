// three_cases_for_test.h: cases of which one goes wrong between two that do not.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/runner/nccl/process_fabric_for_test.h"

namespace shardproof {

inline const std::vector<std::string> kThree = {"w2.ddp", "w2.zero3.k2", "w2.zero1"};

// Rank 1 does this inside of its second case.
inline ProcessHooks Bad(const std::function<void()>& what) {
  return {nullptr, [what](int rank, int nth_case) {
            if (rank == 1 && nth_case == 1) what();
          }};
}

}  // namespace shardproof
