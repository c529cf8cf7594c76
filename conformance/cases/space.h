// space.h: which values of which knobs does the suite combine?
//
// The space is the part of the FSDP configuration space that engines are judged in, as a covering
// problem: one factor per knob, and relations for what is legal together (grids that divide, HSDP
// that has something to shard over, exactness bounds). A row of it is a case with one instance, and
// the other way round.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/covering.h"

namespace shardproof {

class CaseSpace {
 public:
  // Worlds that cases may have.
  explicit CaseSpace(const std::vector<int32_t>& worlds);

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

  template <typename Owner, typename T>
  void Add(const std::string& name, T Owner::*member, const std::vector<T>& values);
  void AddPlace();
  void AddGridFactors(const std::vector<int32_t>& worlds);
  void AddEngineFactors();
  void AddModelFactors();
  void RelateGrid();
  void RelateAverages();

  CoveringProblem problem_;
  std::vector<Setter> setters_;
};

}  // namespace shardproof
