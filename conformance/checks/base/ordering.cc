#include "conformance/checks/base/ordering.h"

#include <vector>

#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

std::string WhyNot(const Analysis& a) {
  std::string why;
  for (const Trace& trace : a.traces()) {
    const Provides& has = trace.provides;
    if (trace.end != TraceEnd::kComplete) why = "the run was ended early";
    if (!has.collectives || !has.sync || !has.work)
      why = "the traces do not provide all work and synchronisation";
  }
  if (!why.empty()) return why;
  const graph::Program* program = a.lowered().program();
  if (program == nullptr) return a.lowered().why();
  if (!program->inconsistent_groups.empty()) return program->inconsistent_groups;
  if (!program->unordered_threads.empty()) return program->unordered_threads;
  if (a.lowered().may().HasCycle()) return "the run can hang, so nothing is ordered for sure";
  return "";
}

}  // namespace

Ordering::Ordering(const Analysis& a) : a_(a), why_(WhyNot(a)) {}

bool Ordering::Precedes(int32_t rank, int64_t first, int64_t second) const {
  const graph::Lowered& lowered = a_.lowered();
  const uint32_t a = lowered.EntryAt(rank, first), b = lowered.EntryAt(rank, second);
  return a != graph::kNone && b != graph::kNone && a != b && lowered.may().Precedes(a, b);
}

std::string Ordering::Name(uint32_t node) const {
  const graph::Program& program = *a_.lowered().program();
  const int64_t what = a_.lowered().may().graph().what[node];
  if (what < 0) return graph::DescribeOperation(program, static_cast<uint32_t>(~what));
  const graph::Entry& entry = At(program.entries, what);
  return "rank " + std::to_string(entry.rank) + "'s " + a_.Describe(entry.rank, entry.event);
}

std::string Ordering::Path(int32_t rank, int64_t first, int64_t second) const {
  constexpr size_t kSteps = 6;
  const graph::Lowered& lowered = a_.lowered();
  const uint32_t a = lowered.EntryAt(rank, first), b = lowered.EntryAt(rank, second);
  if (a == graph::kNone || b == graph::kNone) return "";
  const std::vector<uint32_t> path = lowered.may().Path(a, b);
  std::string text, last;
  size_t steps = 0;
  for (size_t i = 0; i < path.size(); ++i) {
    const std::string name = Name(path[i]);
    if (name == last) continue;
    last = name;
    if (++steps > kSteps && i + 1 < path.size()) continue;
    text += (text.empty() ? "" : steps > kSteps + 1 ? ", ..., then " : ", then ") + name;
  }
  return text;
}

}  // namespace shardproof
