// pipeline_space.h: which values of which knobs does the suite combine in interleaved pipelines,
// and with layer-wise engines under the 1F1B schedule?
//
// Who passes what from stage to stage and when, with every strategy. space.h, schedule_space.h and
// layer_wise_space.h have the rest. As there, a row is a case with one legal instance, and the
// other way round.
#pragma once
#include <vector>

#include "conformance/cases/factor_space.h"

namespace shardproof {

class PipelineSpace : public FactorSpace {
 public:
  // Worlds that cases may have.
  explicit PipelineSpace(const std::vector<int32_t>& worlds);

  // The derived case of a row that is allowed. Not a factor: the sequence length (as long as the
  // exactness bound permits, at most 8).
  Case Make(const CoveringRow& row, uint64_t seed) const;

 private:
  // What engines do of their own: each legal tuple of these factors' values that means something.
  std::vector<std::vector<uint8_t>> EnginesAlone(const std::vector<std::string>& of) const;
  void RelateStages();
};

}  // namespace shardproof
