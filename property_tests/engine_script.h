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

// By parameter: its elements.
using Weights = std::map<std::string, std::vector<double>>;
// By step and sample of the step's batch.
using Losses = std::map<std::pair<int64_t, int64_t>, double>;

struct ScriptResult {
  Weights weights;                           // the last that were published
  std::map<int64_t, Weights> params, grads;  // by the training step that published them
  std::map<int32_t, Weights> loaded;         // by the load, counted in entry calls: create is 0
  Losses losses, eval_losses;
  // Published twice with different values, or in part.
  std::vector<std::string> contradictions;
  std::vector<std::string> errors;  // by rank: of the first call that failed; empty
};

// id: one instance; its own script is not used. script: letters with a digit or letter each, t2
// trains step 2, e2 evaluates it, sA saves into FOLDER/A, lA loads from there, r0 destroys the
// engine and creates it again. A rank whose call fails goes to the end.
ScriptResult RunEngineScript(const std::string& id, const std::string& folder,
                             const std::string& script);

// The first difference, in words; empty: equal.
std::string Difference(const Weights& seen, const Weights& expected);
Losses OfStep(const Losses& losses, int64_t step);

}  // namespace shardproof
