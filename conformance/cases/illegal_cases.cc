// illegal.h's CasesThatAsk, and of all rules profiles.h's IllegalCases.
#include "conformance/cases/from_ids.h"
#include "conformance/cases/illegal.h"
#include "conformance/cases/profiles.h"

namespace shardproof {

std::vector<Case> CasesThatAsk(const std::vector<IllegalRule>& rules) {
  std::vector<std::string> ids;
  for (const IllegalRule& rule : rules) ids.insert(ids.end(), rule.asked.begin(), rule.asked.end());
  return FromIds(ids);
}

std::vector<Case> IllegalCases() { return CasesThatAsk(IllegalRules()); }

}  // namespace shardproof
