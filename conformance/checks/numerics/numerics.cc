#include "conformance/checks/numerics/numerics.h"

namespace shardproof {

CheckResult CheckNumerics(const Analysis& a) {
  CheckResult result;
  if (!a.legal()) return result;
  const std::initializer_list<const char*> all = {"FS-01", "FS-15", "FS-16", "FS-17", "FS-20",
                                                  "FS-23", "FS-24", "FS-25", "FS-28", "FS-34",
                                                  "GE-29", "GE-30", "GE-31", "GE-33", "GE-34"};
  if (!a.has_case()) {
    CannotJudge(result, all, a.why());
    return result;
  }
  for (const Trace& trace : a.traces()) {
    if (trace.provides.results && trace.provides.calls) continue;
    CannotJudge(
        result, all,
        "rank " + std::to_string(trace.rank) + "'s trace has no results: record digests or bytes");
    return result;
  }
  if (a.run().oracles.size() != a.n_instances()) {
    CannotJudge(result, all, "the run comes without an oracle");
    return result;
  }
  result.Merge(CheckPublished(a));
  result.Merge(CheckReads(a));
  result.Merge(CheckScalars(a));
  return result;
}

}  // namespace shardproof
