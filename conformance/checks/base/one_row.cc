#include "conformance/checks/base/one_row.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardproof {

namespace {

void Keep(CheckResult& result, NotCheckable row, std::set<std::string>& told) {
  if (told.insert(row.requirement).second) result.not_checkable.push_back(std::move(row));
}

}  // namespace

void KeepOneRowEach(CheckResult& result) {
  using Kind = NotCheckable::Kind;
  const std::vector<NotCheckable> rows = std::move(result.not_checkable);
  result.not_checkable.clear();
  std::set<std::string> told;
  for (const Finding& finding : result.findings) {
    result.judged.insert(finding.requirement);
    told.insert(finding.requirement);
  }
  for (const NotCheckable& row : rows) {
    if (row.kind != Kind::kMissing || told.contains(row.requirement)) continue;
    result.judged.erase(row.requirement);
    Keep(result, row, told);
  }
  for (const NotCheckable& row : rows) {
    if (row.kind == Kind::kBounded) Keep(result, row, told);
  }
  told.insert(result.judged.begin(), result.judged.end());
  for (const NotCheckable& row : rows) {
    if (row.kind == Kind::kNotAsked) Keep(result, row, told);
  }
}

}  // namespace shardproof
