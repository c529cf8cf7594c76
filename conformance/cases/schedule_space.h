// schedule_space.h: which values of which knobs does the suite combine with experts and schedules?
//
// The part of the configuration space where layers have experts: how tokens are routed, who holds
// which expert, and in which order a step's work is issued. space.h is the part without experts. As
// there, a row is a case with one legal instance, and the other way round.
#pragma once
#include <vector>

#include "conformance/cases/factor_space.h"

namespace shardproof {

class ScheduleSpace : public FactorSpace {
 public:
  // Worlds and expert-parallel sizes that cases may have.
  explicit ScheduleSpace(const std::vector<int32_t>& worlds,
                         const std::vector<int32_t>& eps = AllEps());
  static std::vector<int32_t> AllEps() { return {1, 2, 4, 8}; }

  // The derived case of a row that is allowed. Not a factor: etp (EtpOf) and the sequence
  // length (as long as the exactness bound permits, at most 8).
  Case Make(const CoveringRow& row, uint64_t seed) const;

 private:
  void AddRanks(const std::vector<int32_t>& worlds, const std::vector<int32_t>& eps);
  // What is legal together: grids and the schedules that they allow; layers that exist.
  void RelateGridAndSchedule();
  void RelateLayers();
  void RelateChoices();
};

// Bytes of the parameters of this many FSDP units (layers, the largest one each time) as nodes read
// them. REQUIRES: the instance is derived.
int64_t BytesOfUnits(const InstanceSpec& spec, int64_t units);

}  // namespace shardproof
