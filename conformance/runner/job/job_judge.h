// job_judge.h: how do the processes of a job run cases together, and rank 0 judge them?
//
// Each process calls the same: rank 0 with what it has chosen, the others with what it told them.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace shardproof {

// One line a case. CasesOf throws std::invalid_argument for what is no id.
std::string IdsOf(const std::vector<Case>& cases);
std::vector<Case> CasesOf(const std::string& ids);

class JobJudge {
 public:
  JobJudge() = default;
  virtual ~JobJudge() = default;
  JobJudge(const JobJudge&) = delete;
  JobJudge& operator=(const JobJudge&) = delete;

  // Whether this is rank 0.
  virtual bool reports() const = 0;
  // On all processes; answers rank 0's text.
  virtual std::string Broadcast(const std::string& text) = 0;
  // On all processes; answers, on rank 0, whether it is so on any.
  virtual bool Any(bool here) = 0;

  using Done = std::function<void(size_t place, CaseReport report)>;
  // done: on rank 0, in the order of the cases. enough, on rank 0: whether no further case is to be
  // run; null: it never is.
  virtual void Judge(const std::vector<Case>& cases, const Done& done,
                     const std::function<bool()>& enough) = 0;
  // At the end, on rank 0: lines for the report.
  virtual std::vector<std::string> Facts() const = 0;

  // On rank 0, while the others Follow(): judges these.
  std::vector<CaseReport> Lead(const std::vector<Case>& cases);
  // No more cases.
  void EndLead();
  void Follow();
};

}  // namespace shardproof
