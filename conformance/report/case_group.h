// case_group.h: to which group of cases does a case belong, in reports?
#pragma once
#include <string>
#include <string_view>

namespace shardproof {

// Sharding strategy and what stands beside it: "zero3", "zero2 + experts + 1F1B", "lw + pipeline".
// An id that is none of this suite's, say of a recorded program: "recorded".
std::string CaseGroup(std::string_view id);

}  // namespace shardproof
