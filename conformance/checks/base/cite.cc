#include "conformance/checks/base/cite.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shardproof {

void Cite(const CitedRow& row, const CheckResult& from, const char* note, CheckResult& to) {
  const auto speaks = [&](const std::string& id) {
    return std::find(row.rows.begin(), row.rows.end(), id) != row.rows.end();
  };
  if (std::any_of(from.judged.begin(), from.judged.end(), speaks)) to.judged.insert(row.id);
  const auto open =
      std::find_if(from.not_checkable.begin(), from.not_checkable.end(), [&](const auto& one) {
        return one.kind == NotCheckable::Kind::kMissing && speaks(one.requirement);
      });
  if (open != from.not_checkable.end())
    to.not_checkable.push_back({row.id, open->requirement + ": " + open->why});
  const auto first =
      std::find_if(from.findings.begin(), from.findings.end(),
                   [&](const Finding& finding) { return speaks(finding.requirement); });
  if (first == from.findings.end()) return;
  Finding finding = *first;
  finding.message += " (" + finding.requirement + ", " + note + ")";
  finding.requirement = row.id;
  to.findings.push_back(std::move(finding));
}

}  // namespace shardproof
