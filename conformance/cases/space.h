// space.h: which values of which knobs does the suite combine?
//
// The space is the part of the FSDP configuration space that engines are judged in, as a covering
// problem: one factor per knob, and relations for what is legal together (grids that divide, HSDP
// that has something to shard over, exactness bounds). A row of it is a case with one instance, and
// the other way round.
#pragma once
#include <vector>

#include "conformance/cases/factor_space.h"

namespace shardproof {

class CaseSpace : public FactorSpace {
 public:
  // Worlds that cases may have.
  explicit CaseSpace(const std::vector<int32_t>& worlds);

  // The derived case of a row that is allowed. Not a factor: etp (EtpOf) and the sequence
  // length (as long as the exactness bound permits, at most 8).
  Case Make(const CoveringRow& row, uint64_t seed) const;

 private:
  void RelateGrid();
};

}  // namespace shardproof
