#include "conformance/checks/testing/found_in.h"

#include "conformance/checks/testing/shown.h"

namespace shardproof {

std::string FoundIn(const CheckResult& result) {
  Show(result);
  return FoundWithoutTrace(result);
}

std::string FoundWithoutTrace(const CheckResult& result) {
  std::set<std::string> ids;
  for (const Finding& finding : result.findings) ids.insert(finding.requirement);
  std::string text;
  for (const std::string& id : ids) text += (text.empty() ? "" : " ") + id;
  return text;
}

std::set<std::string> NotCheckableIn(const CheckResult& result) {
  std::set<std::string> ids;
  for (const NotCheckable& row : result.not_checkable) ids.insert(row.requirement);
  return ids;
}

}  // namespace shardproof
