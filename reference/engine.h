// engine.h: what is one engine, from create to destroy?
#pragma once
#include <memory>

#include "reference/checkpoint/checkpoint.h"
#include "reference/plan/plan.h"
#include "reference/run/executor.h"

namespace reference {

// One rank of one engine instance. Nothing is shared between instances.
class Engine {
 public:
  explicit Engine(spf_host* host) : c_(host) {}

  // Reads and checks the configuration, makes or asks for the groups. Issues no collective before
  // everything that can be refused is checked. Throws Rejected, Unsupported, GridError, GroupError.
  void Configure();
  // Streams, memory; and initial values, which it publishes as PARAM, unless init_device = meta.
  void Build();
  void TrainStep(int64_t step);
  void EvalStep(int64_t step);
  // What this rank will issue in that step; all: every single step of it (plan/print.h).
  std::string PlanText(int64_t step, bool all) const;
  void Save(const std::string& folder);
  void Load(const std::string& folder);
  void Destroy();
  // Instead, after a call that failed and may have left anything behind.
  void GiveBack();

 private:
  void ConfigureGroups(const GroupDemand& demand);
  void CheckSizes() const;
  void PlanBuckets();
  void CreateStreams();
  // Initial values, and what follows from them, if nothing has brought any since create.
  void Materialise();
  // What this engine's plans follow from; of a step without programs only what installs weights.
  PlanFacts Facts(std::optional<int64_t> step = std::nullopt) const;
  void DestroyGroups();

  Context c_;
  bool idle_ = false;  // this rank is outside the grid
  std::vector<spf_group> created_groups_;
  ParamStore store_{c_};
  Optimizer optimizer_{c_};
  GradStatistics statistics_{c_};
  Checkpoint checkpoint_{c_, optimizer_};
  std::unique_ptr<Reductions> reductions_;
  std::unique_ptr<Executor> executor_;  // none on idle ranks
  bool has_values_ = false;             // main weights: initial ones, or a checkpoint's
  bool stale_ = false;                  // weights were installed since they were last gathered
  bool backward_stale_ = false;         // since copies for backward were
};

}  // namespace reference
