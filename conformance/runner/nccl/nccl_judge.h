// nccl_judge.h: how do rank processes run the cases of a job, and who hears how they ended?
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/fabric/nccl/rendezvous/case_table.h"
#include "conformance/fabric/nccl/rendezvous/store.h"
#include "conformance/runner/job/job_judge.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/nccl/case_work.h"
#include "conformance/runner/nccl/kit.h"
#include "conformance/runner/nccl/rank_processes.h"
#include "conformance/runner/options.h"
#include "conformance/runner/plugin.h"
#include "conformance/runner/scratch_folder.h"

namespace shardproof {

// The processes of a job, one rank each; or one process that has all ranks.
class NcclJudge : public JobJudge {
 public:
  // job: this process's end of the job; null: this process starts all options.ranks ranks.
  NcclJudge(const Options& options, const NcclKit& kit, std::unique_ptr<Store> job);
  int ranks() const { return options_.ranks; }

  bool reports() const override { return store_->rank() == 0; }
  std::string Broadcast(const std::string& text) override;
  bool Any(bool here) override;
  // Throws JobRefused where no case can run on this machine.
  void Judge(const std::vector<Case>& cases, const Done& done,
             const std::function<bool()>& enough) override;
  std::vector<std::string> Facts() const override;

 private:
  std::unique_ptr<RankWork> WorkFor(const RankSide& side);
  void Prepare(int world);
  Verdict RunLegs(const Case& c);
  std::optional<CaseEnd> RunOne(const Case& leg, const NcclItem& item);
  bool Gather(const Case& leg, CaseTable& meeting, std::vector<RankAnswer>* answers);

  Options options_;
  const NcclKit& kit_;
  bool is_job_;  // several processes; else this one starts all ranks
  std::unique_ptr<Store> store_;
  std::optional<ScratchFolder> scratch_;  // of rank 0
  std::string folder_;
  std::optional<Plugin> plugin_;  // in rank processes only
  std::optional<RankProcesses> processes_;
  size_t said_ = 0;    // texts that rank 0 told all
  size_t asked_ = 0;   // of Any
  size_t starts_ = 0;  // legs that were begun
  size_t runs_ = 0;    // cases
};

}  // namespace shardproof
