// node_math.h: how does one node run one phase on the engine's memory?
#pragma once
#include <vector>

#include "conformance/model/interim/kernels.h"
#include "conformance/model/model.h"
#include "conformance/model/interim/sites.h"
#include "conformance/model/interim/tables.h"

namespace shardproof {

class NodeMath {
 public:
  NodeMath(const ModelConfig& config, const Dims& dims, const TableSet& tables, const NodeDef& def, const Site& site)
      : config_(config), dims_(dims), tables_(tables), def_(def), site_(site), q_{config.quantised} {}

  void Run(const NodeArgs& args);

  // For the calibration: what this node's backward would put on grids.
  Site Fit(const NodeArgs& args);

 private:
  using Floats = std::vector<float>;
  void Forward();
  void Dgrad();
  void Wgrad();
  void WgradEmbed();

  const float* Act(int32_t id) const { return static_cast<const float*>(args_->act[id]); }
  float* ActOut() const { return static_cast<float*>(args_->act[def_.out]); }
  const int32_t* Ints(int32_t id) const { return static_cast<const int32_t*>(args_->act[id]); }
  const float* Dact(int32_t id) const { return static_cast<const float*>(args_->dact[id]); }
  Floats Param(int32_t id, const Grid& grid) const;  // widened and on its grid
  Floats Upstream(const Grid& grid, int64_t n) const;
  // Writes or adds values to the gradient of an activation, as the node's uses say.
  void Emit(int32_t value, const float* x, int64_t n) const;
  // Adds values, times the odd divisor, to a parameter's gradient; nothing if it does not train.
  void AddGrad(int32_t param, const float* x, int64_t n) const;
  Grid Operand(const Grid& grid) const;  // of weight gradients: ternary in the narrow profile

  const ModelConfig& config_;
  const Dims& dims_;
  const TableSet& tables_;
  const NodeDef& def_;
  Site site_;
  Quantiser q_;
  const NodeArgs* args_ = nullptr;
};

// The grids of all sites, from one sample at the initial weights.
std::vector<Site> Calibrate(const ModelConfig& config, const TableSet& tables);

}  // namespace shardproof
