// probe.h: can this engine be loaded, asked and unloaded, and what does it say of itself?
//
// Found out in processes of their own, before any case runs: foreign code of constructors,
// destructors and shardproof_plugin never runs here.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/report/report.h"
#include "conformance/runner/options.h"

namespace shardproof {

struct EngineProbe {
  bool loads = false;                           // cases can be asked
  bool has_plan = false;                        // spf_plugin.plan
  std::string name;                             // "my engine 2.1", as it calls itself, or empty
  std::vector<Finding> findings;                // of loading, asking or unloading it
  std::map<int32_t, std::string> printed = {};  // where there is a finding
};

// Throws std::invalid_argument that says why the address names no engine that this suite can use:
// no such file, no library, no shardproof_plugin, another version of the interface, a function
// missing.
EngineProbe ProbeEngine(const Options& options);

// What the probe has found, as a row of the report beside its cases.
std::optional<CaseReport> RowOf(const EngineProbe& probe, const Options& options);

}  // namespace shardproof
