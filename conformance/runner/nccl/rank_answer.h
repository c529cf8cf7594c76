// rank_answer.h: what does a rank process say about a case, and how does that travel?
#pragma once
#include <string>
#include <vector>

#include "conformance/common/frame.h"
#include "conformance/fabric/mpi/case_end.h"

namespace shardproof {

// What a rank says about a case that it has come to the end of.
struct RankAnswer {
  RankEnd end;                          // kReturned, kException, kHung or kAborted
  bool waited = false;                  // kHung, kAborted: the host was waiting for other ranks
  bool reusable = true;                 // false: another process is to run this rank's next case
  std::vector<std::string> mismatches;  // operations that met without being alike
};

Frame FieldsOf(const RankAnswer& answer);
RankAnswer AnswerOf(const Frame& fields);  // throws std::runtime_error if they are not whole

}  // namespace shardproof
