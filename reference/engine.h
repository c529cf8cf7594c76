// engine.h: what is one engine, from create to destroy?
#pragma once
#include <memory>

#include "reference/checkpoint/checkpoint.h"
#include "reference/fsdp/param_store.h"
#include "reference/fsdp/reduce_pipeline.h"
#include "reference/fsdp/training.h"
#include "reference/optim/grad_statistics.h"
#include "reference/optim/optimizer.h"

namespace reference {

// One rank of one engine instance. Nothing is shared between instances.
class Engine {
 public:
  explicit Engine(spf_host* host) : c_(host) {}

  // Reads and checks the configuration, makes or asks for the groups. Issues no collective before
  // everything that can be refused is checked. Throws Rejected, Unsupported, GridError, GroupError.
  void Configure();
  // Streams, memory, initial values. Publishes PARAM.
  void Build();
  void TrainStep(int64_t step);
  void EvalStep(int64_t step);
  void Save(const std::string& folder);
  void Load(const std::string& folder);
  void Destroy();
  // Instead, after a call that failed and may have left anything behind.
  void GiveBack();

 private:
  void ConfigureGroups(const GroupDemand& demand);
  void CheckSizes() const;
  void CheckModel() const;
  void PlanBuckets();
  void CreateStreams();
  void InstallAndPublish();
  void DestroyGroups();

  Context c_;
  bool idle_ = false;  // this rank is outside the grid
  std::vector<spf_group> created_groups_;
  ParamStore store_{c_};
  Optimizer optimizer_{c_};
  GradStatistics statistics_{c_};
  Checkpoint checkpoint_{c_, optimizer_};
  std::unique_ptr<ReducePipeline> reductions_;
  std::unique_ptr<Training> training_;  // none on idle ranks
};

}  // namespace reference
