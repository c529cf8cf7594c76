// recorded_traces_for_test.h: traces that the reference leaves on disk, and ways to make them say
// less.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/runner/recorded_ends.h"
#include "conformance/trace/event.h"

namespace shardproof::recorded {

using Traces = std::vector<Trace>;

// What the reference leaves on disk, once for each case and level.
const Traces& Good(const std::string& id, RecordLevel level = RecordLevel::kDigests);

Status StatusOfTraces(const Traces& traces);
// All that a person reads about the verdict.
std::string Words(const Verdict& verdict);

// The index of the nth event of the kind, and of the entry call of that name.
size_t Find(const Trace& trace, EventKind kind, const std::string& name, int nth = 0);
void CutBefore(Trace& trace, size_t event);
// So many events behind the one that Find finds.
void CutAll(Traces& traces, EventKind kind, const std::string& name, int nth, size_t after);
void ProvideNothing(Traces& traces);
void Name(Traces& traces, const std::string& id);
void End(Trace& trace, TraceEnd end);
void Answer(Trace& trace, const std::string& call, spf_status status);

}  // namespace shardproof::recorded
