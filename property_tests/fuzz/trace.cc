// trace.cc: does any text get a verdict from the checks, or a refusal with a line?
//
// The text holds the traces of a run one after the other, as `cat trace.*.jsonl` would give them: a
// new one begins at each header.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/runner/recorded_ends.h"
#include "conformance/trace/reader.h"

namespace shardproof {
namespace {

constexpr std::string_view kHeader = "{\"shardproof_trace\"";
constexpr size_t kMostTraces = 8;

// Nothing: no run. The rules are those of ReadTraceFolder.
std::vector<Trace> ReadRun(std::string_view text) {
  std::vector<Trace> traces;
  while (!text.empty() && traces.size() <= kMostTraces) {
    const size_t next = text.find(kHeader, 1);
    Trace trace = ReadTrace(text.substr(0, next), "fuzz");
    text.remove_prefix(std::min(next, text.size()));
    if (trace.rank != static_cast<int32_t>(traces.size())) return {};
    if (!traces.empty() && trace.case_id != traces[0].case_id) return {};
    if (!traces.empty() && trace.world != traces[0].world) return {};
    traces.push_back(std::move(trace));
  }
  const bool whole = !traces.empty() && static_cast<size_t>(traces[0].world) == traces.size();
  return whole ? std::move(traces) : std::vector<Trace>{};
}

// Elements of a layer times tokens, over all layers and entry calls.
int64_t Work(const Case& c) {
  int64_t work = 0;
  for (const InstanceSpec& spec : c.instances) {
    const ModelConfig& model = spec.model;
    const int64_t layer = int64_t{model.width} * (model.width + model.ffn + model.vocab) *
                          std::max(1, model.moe.experts);
    work += layer * model.layers * TokensPerStep(spec) * static_cast<int64_t>(spec.script.size());
  }
  return work;
}

// A case that takes long to train is passed over.
bool IsLong(const std::string& id) {
  constexpr int64_t kMostWork = 1 << 24;
  try {
    return Work(ParseId(id)) > kMostWork;
  } catch (const std::invalid_argument&) {
    return false;  // somebody else's program
  }
}

// As `shardproof check` does it.
void Judge(std::vector<Trace> traces) {
  if (traces.empty() || IsLong(traces[0].case_id)) return;
  const Verdict verdict = JudgeTraces(std::move(traces), "fuzz").verdict;
  if (verdict.outcome == Outcome::kPass && verdict.result.judged.empty()) {
    std::cerr << "a pass without a judgement\n";
    std::abort();
  }
}

}  // namespace
}  // namespace shardproof

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    shardproof::Judge(shardproof::ReadRun(text));
  } catch (const shardproof::TraceError&) {
    // refused, with file and line
  }
  return 0;
}
