#include "conformance/checks/budgets/budgets.h"

namespace shardproof {

CheckResult CheckBudgets(const Analysis& a) {
  CheckResult result;
  if (!a.legal()) return result;
  if (!a.has_case()) {
    NeedsCase(a, result, {"BU-01", "BU-02", "BU-03", "BU-04", "BU-05", "BU-06", "BU-07"});
    return result;
  }
  result.Merge(CheckGradientPeak(a));
  result.Merge(CheckPinned(a));
  result.Merge(CheckWire(a));
  result.Merge(CheckPurpose(a));
  result.Merge(CheckHostWaits(a));
  return result;
}

}  // namespace shardproof
