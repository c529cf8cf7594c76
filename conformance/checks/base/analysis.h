// analysis.h: what do the checks of one run share?
//
// Built once per run: the case's facts and words for findings; when first asked for, the flow of
// parameter and gradient elements and the order of the work. Every check is a function of it; since
// it is built from a Run alone, checks are pure functions of a Run.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/base/check.h"
#include "conformance/checks/base/facts.h"
#include "conformance/checks/base/flow.h"
#include "conformance/checks/program/lowered.h"

namespace shardproof {

struct CarriedOfRank;  // carried.h

// Not for several threads at once.
class Analysis {
 public:
  // Implicit, so that CheckGroups(run) works. Keeps a reference to the run.
  Analysis(const Run& run);  // NOLINT(google-explicit-constructor)
  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;

  const Run& run() const { return run_; }
  const std::vector<Trace>& traces() const { return run_.traces; }
  const Trace& trace(int32_t rank) const { return run_.traces[size_t(rank)]; }
  int32_t ranks() const { return static_cast<int32_t>(run_.traces.size()); }
  // False for foreign traces and for cases whose facts cannot be built: why() says it.
  bool has_case() const { return why_.empty(); }
  const std::string& why() const { return why_; }
  bool legal() const;  // a case that engines are expected to run
  // Some rank's optimizer rounds its own way (Trace::bounded_updates).
  bool bounded_updates() const;
  // Every rank ran the whole script: what is missing is missing for good.
  bool ended_well() const { return ended_well_; }

  size_t n_instances() const { return instances_.size(); }
  const InstanceFacts& Facts(size_t instance) const { return *instances_[instance]; }
  const Flow& flow() const;  // REQUIRES: has_case()
  // False when meaning could not be followed to the end; the reason is flow_why().
  bool has_flow() const { return has_case() && flow().complete(); }
  std::string flow_why() const;
  // How the run's work is ordered. Traces are lowered once, here.
  const graph::Lowered& lowered() const { return lowered_; }

  // A finding at an event: rank, step, stream and operation filled in.
  Finding At(const char* requirement, int32_t rank, int64_t event) const;
  // A finding about a whole entry call, which is named as on rank `as_on`; rank -1: of all ranks.
  Finding AtCall(const char* requirement, int32_t rank, int instance, int32_t call,
                 int32_t as_on) const;
  std::string Describe(int32_t rank,
                       int64_t event) const;  // "compute layers.1.attn BWD, microbatch 0"
  std::string CallName(int32_t rank, int instance, int32_t call) const;  // "train_step 2"
  int32_t StepOf(int32_t rank, int instance, int32_t call) const;
  bool CameBack(int32_t rank, int instance, int32_t call) const;  // with SPF_OK
  const CarriedOfRank& CarriedOf(int32_t rank) const;             // REQUIRES: has_flow()
  std::string ContentText(const Content& content) const;

 private:
  void BuildFacts();
  graph::Names NamesOfTheCase() const;
  std::string NodeName(int32_t rank, const Event& event) const;
  std::string PublishedName(int32_t rank, const Event& event) const;  // " name"; empty: no tensor
  struct CallText {
    std::string text;
    int32_t step = -1;
  };
  const Run& run_;
  std::string why_;
  bool ended_well_ = true;
  std::vector<std::unique_ptr<InstanceFacts>> instances_;
  mutable std::unique_ptr<const Flow> flow_;
  mutable std::map<int32_t, std::shared_ptr<const CarriedOfRank>> carried_;  // by rank
  const graph::Lowered lowered_;
  std::vector<std::vector<std::vector<CallText>>> calls_;     // by rank, instance, call
  std::vector<std::set<std::pair<int, int32_t>>> came_back_;  // by rank: (instance, call)
};

// Appends requirements as judged.
void Judge(CheckResult& result, std::initializer_list<const char*> requirements);
// Evidence for them is missing.
void CannotJudge(CheckResult& result, std::initializer_list<const char*> requirements,
                 const std::string& why);
// They need the case's facts, or the flow, that a does not have (a.flow_why()). Of traces that come
// without a case nobody asks that.
void NeedsCase(const Analysis& a, CheckResult& result,
               std::initializer_list<const char*> requirements);
// Nobody asked for the evidence, so that nothing is missing.
void NotAsked(CheckResult& result, std::initializer_list<const char*> requirements,
              const std::string& why);
// Adds a finding; beyond a few of the same requirement and rank it only counts.
class FindingSink {
 public:
  explicit FindingSink(CheckResult& result, int per_requirement = 8)
      : result_(result), limit_(per_requirement) {}
  ~FindingSink();
  FindingSink(const FindingSink&) = delete;
  FindingSink& operator=(const FindingSink&) = delete;
  void Add(Finding finding);
  void Add(Finding where, std::string expected, std::string seen, std::string message);

 private:
  CheckResult& result_;
  int limit_;
  std::map<std::string, int> seen_;
};

}  // namespace shardproof
