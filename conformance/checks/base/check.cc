#include "conformance/checks/base/check.h"

#include <iterator>
#include <utility>

namespace shardproof {

void CheckResult::Merge(CheckResult other) {
  for (Finding& finding : other.findings) {
    if (finding.follows >= 0) finding.follows += static_cast<int32_t>(findings.size());
  }
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(findings, other.findings);
  append(not_checkable, other.not_checkable);
  append(notes, other.notes);
  judged.insert(other.judged.begin(), other.judged.end());
  if (other.slots) slots = std::move(other.slots);
}

}  // namespace shardproof
