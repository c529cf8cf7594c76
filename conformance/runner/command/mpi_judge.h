// mpi_judge.h: how do all ranks of a job run cases together, and rank 0 judge them?
//
// A case is judged in a process beside rank 0's, while the ranks run the next one.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/fabric/mpi/mpi_world.h"
#include "conformance/runner/job/job_judge.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/options.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/workers/work_beside.h"

namespace shardproof {

class MpiJudge : public JobJudge {
 public:
  // On all ranks.
  MpiJudge(const Options& options, MpiWorld& world);
  bool reports() const override { return world_.rank() == 0; }
  std::string Broadcast(const std::string& text) override { return world_.Broadcast(text); }
  bool Any(bool here) override;
  // done: as soon as a verdict is there. The others go on meanwhile, up to their next collective.
  // enough: asked where options end a run early, which then waits for each verdict.
  void Judge(const std::vector<Case>& cases, const Done& done,
             const std::function<bool()>& enough) override;
  std::vector<std::string> Facts() const override;

 private:
  // The case that ran last, until its verdict is there.
  struct Pending {
    const Case* spec = nullptr;
    size_t place = 0;
    double ran = 0;   // seconds
    Verdict verdict;  // unless it is judged beside
  };

  void RunOne(const Case& c, size_t place, const Done& done);
  CaseEnd RunLeg(const Case& c, const std::string& folder, const Done& done);
  // Why cases that save are not judged; empty: they are.
  std::string WhyNoSaves() const;
  Verdict NotShared();
  void Settle(const Done& done);  // done with what is pending

  const Options& options_;
  MpiWorld& world_;
  std::optional<ScratchFolder> scratch_;  // of rank 0
  std::string folder_;
  bool left_saves_out_ = false;
  std::string apart_;  // a host that does not see the folder; empty: all do
  size_t runs_ = 0;
  WorkBeside beside_;
  std::optional<Pending> pending_;
};

}  // namespace shardproof
