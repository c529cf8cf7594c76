// ask_engine.h: does an engine take these cases?
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/support/learn.h"

namespace shardproof {

// After so many ends of its process nothing more is asked: each may have cost a stall.
inline constexpr size_t kMostEnds = 3;

class EngineAsker {
 public:
  // stall_seconds: a case without progress for so long hangs.
  EngineAsker(std::string address, double stall_seconds);

  // Runs each case on sim, many in one process of their own. After an end the next case is asked in
  // another process. Once it was given up, all is declined. Throws std::runtime_error for what
  // fails in the suite.
  std::vector<TakeAnswer> Ask(const std::vector<Case>& cases);

  // Cases that ended it.
  const std::vector<std::string>& ends() const { return ends_; }
  bool gave_up() const { return ends_.size() >= kMostEnds; }

 private:
  std::string address_;
  double stall_seconds_;
  std::vector<std::string> ends_;
};

}  // namespace shardproof
