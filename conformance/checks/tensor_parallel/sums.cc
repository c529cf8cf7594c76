// What is computed in summands over tp or cp is summed over it, once, before it is read; parts of
// the sequence are gathered.
#include <set>
#include <string>

#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/checks/tensor_parallel/value_walk.h"

namespace shardproof {

CheckResult CheckTpSums(const Analysis& a, OverTp& over_tp) {
  CheckResult result;
  for (const Trace& trace : a.traces()) {
    const Provides& provides = trace.provides;
    if (provides.memory && provides.work && provides.collectives) continue;
    const std::string why =
        "rank " + std::to_string(trace.rank) + "'s trace lacks memory ranges, work or collectives";
    for (size_t i = 0; i < a.n_instances(); ++i) {
      const std::set<std::string> ids = ShownBySums(a.Facts(i));
      for (const std::string& id : ids) CannotJudge(result, {id.c_str()}, why);
    }
    return result;
  }
  FindingSink sink(result);
  over_tp.resize(size_t(a.ranks()));
  ValueWalks(a, result, sink, over_tp).Run();
  return result;
}

}  // namespace shardproof
