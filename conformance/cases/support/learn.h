// learn.h: which values of which knobs does this engine take? Found out by asking it.
//
// Each value is asked in a case that differs from one that the engine takes in as few knobs as can
// be, so that an answer is about that value; what it declines so is asked in pairs, for values that
// go together only. Three that go together only are not found: a file can name them. What it takes
// alone it may still decline in company: cases of a profile may end unsupported.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "conformance/cases/support/supported.h"

namespace shardproof {

enum class TakeAnswer : uint8_t {
  kDeclines,  // all ranks of its grid answer UNSUPPORTED
  kTakes,     // some rank answers anything else: REJECTED too, which is for a verdict
  kEnds       // its process ends, or hangs: for a verdict as well
};
// For each case, in order. Each call asks another process of the engine's.
using AskCases = std::function<std::vector<TakeAnswer>(const std::vector<Case>& cases)>;

struct Learnt {
  Supported supported;  // spaces of which the engine takes any case
  int asked = 0;        // cases
  // By space: the rows in which it took a value for the first time. Each value that it takes is in
  // one; the first is what the others were reached from.
  std::map<std::string, std::vector<CoveringRow>> rows;
};

// Cases that are asked have the script of their row if it is not the usual one, else an empty one:
// create and destroy. world: the size of worlds that is asked first.
Learnt LearnSupport(const std::vector<CaseFactors>& spaces, int32_t world, const AskCases& ask);

}  // namespace shardproof
