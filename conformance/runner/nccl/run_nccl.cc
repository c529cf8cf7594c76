#include "conformance/runner/nccl/run_nccl.h"

#include <utility>

#include "conformance/runner/job/job_run.h"
#include "conformance/runner/nccl/nccl_judge.h"

namespace shardproof {

int RunNcclCommand(const Options& options, const NcclKit& kit, std::unique_ptr<Store> job) {
  if (!kit.open) {
    throw JobRefused(
        "--fabric nccl: this shardproof was built without CUDA and NCCL; build "
        "//conformance:shardproof_gpu where the CUDA toolkit is (ci/gpu does)");
  }
  Options given = options;
  if (given.ranks == 0) given.ranks = kDefaultRanks;
  NcclJudge judge(given, kit, std::move(job));
  given.ranks = judge.ranks();
  return RunInJob(given, judge, {});
}

}  // namespace shardproof
