// schedule_space.h: which values of which knobs does the suite combine with experts and schedules?
//
// The part of the configuration space where layers have experts: how tokens are routed, who holds
// which expert, and in which order a step's work is issued. space.h is the part without experts. As
// there, a row is a case with one legal instance, and the other way round.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/covering.h"

namespace shardproof {

class ScheduleSpace {
 public:
  // Worlds and expert-parallel sizes that cases may have.
  explicit ScheduleSpace(const std::vector<int32_t>& worlds,
                         const std::vector<int32_t>& eps = {1, 2, 4, 8});

  const CoveringProblem& problem() const { return problem_; }
  // Index of a factor. Throws std::invalid_argument for a name there is not.
  int FactorIndex(const std::string& name) const;

  // The derived case of a row that is allowed. Not a factor: etp (equals tp) and the sequence
  // length (as long as the exactness bound permits, at most 8).
  Case Make(const CoveringRow& row, uint64_t seed) const;
  // The row of a case with one legal instance, -1 where the case has a value that the factor does
  // not list.
  CoveringRow RowOf(const Case& c) const;

 private:
  using Setter = std::function<void(Case&, size_t value)>;

  void AddSetter(const std::string& name, const std::vector<std::string>& values, Setter setter);
  template <typename Owner, typename T>
  void Add(const std::string& name, T Owner::*member, const std::vector<T>& values);
  void AddGridFactors(const std::vector<int32_t>& worlds, const std::vector<int32_t>& eps);
  void AddScheduleFactors();
  void AddEngineFactors();
  void AddModelFactors();
  // What is legal together: grids and the schedules that they allow; layers that exist.
  void RelateGridAndSchedule();
  void RelateLayers();
  void RelateChoices();
  void Relate(const std::vector<std::string>& factors,
              const std::function<bool(const Case& c)>& allowed);

  CoveringProblem problem_;
  std::vector<Setter> setters_;
};

// Bytes of the parameters of this many FSDP units (layers, the largest one each time) as nodes read
// them. REQUIRES: the instance is derived.
int64_t BytesOfUnits(const InstanceSpec& spec, int64_t units);

}  // namespace shardproof
