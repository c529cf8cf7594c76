// layer_wise_space.h: which values of which knobs does the suite combine with strategy =
// layer_wise?
//
// Who owns a parameter, how its value travels and when the next forward may read it: layouts,
// transports, buffers and buckets, with grids, optimizers, models and scripts. space.h and
// schedule_space.h have the other strategies. As there, a row is a case with one legal instance,
// and the other way round.
#pragma once
#include <vector>

#include "conformance/cases/factor_space.h"

namespace shardproof {

class LayerWiseSpace : public FactorSpace {
 public:
  // Worlds that cases may have.
  explicit LayerWiseSpace(const std::vector<int32_t>& worlds);

  // The derived case of a row that is allowed. Not a factor: etp (EtpOf), the sequence length
  // (as long as the exactness bound permits, at most 8), and lr, which is 2^-4 so that one stale
  // step shows.
  Case Make(const CoveringRow& row, uint64_t seed) const;

 private:
  // What is legal together: grids and the models whose experts they hold; gathers and dtypes.
  void RelateGridAndModel();
  void RelateGathers();
};

}  // namespace shardproof
