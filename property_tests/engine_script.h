// engine_script.h: what does the reference engine publish when its entry points are called in this
// order?
//
// All ranks of a case on the simulated machine, without judging anything.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shardproof {

// By parameter and element.
using Weights = std::map<std::string, std::map<int64_t, double>>;

struct ScriptResult {
  Weights weights;  // the last that were published
  // By step and sample of the step's batch.
  std::map<std::pair<int64_t, int64_t>, double> losses;
  std::vector<std::string> contradictions;  // two owners published different values
  std::vector<std::string> errors;          // by rank: of the first call that failed; empty
};

// id: one instance; its own script is not used. script: letters with a digit each, t2 trains step
// 2, s1 saves into FOLDER/1, l1 loads from there. A rank whose call fails goes to the end.
ScriptResult RunEngineScript(const std::string& id, const std::string& folder,
                             const std::string& script);

}  // namespace shardproof
