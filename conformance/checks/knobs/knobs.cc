#include "conformance/checks/knobs/knobs.h"

namespace shardproof {

CheckResult CheckKnobs(const Analysis& a) {
  CheckResult result;
  if (!a.legal()) return result;
  result.Merge(CheckTravels(a));
  result.Merge(CheckReshard(a));
  result.Merge(CheckDoubleBuffers(a));
  result.Merge(CheckBackwardCopies(a));
  result.Merge(CheckFineGrained(a));
  result.Merge(CheckRecompute(a));
  result.Merge(CheckLossScale(a));
  result.Merge(CheckOverlapKnobs(a));
  return result;
}

}  // namespace shardproof
