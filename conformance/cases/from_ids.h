// from_ids.h: how is a list of cases written down? As ids.
#pragma once
#include <string>
#include <vector>

#include "conformance/cases/case.h"

namespace shardproof {

// Throws std::invalid_argument for an id that cannot be asked.
inline std::vector<Case> FromIds(const std::vector<std::string>& ids) {
  std::vector<Case> cases;
  for (const std::string& id : ids) cases.push_back(ParseId(id));
  return cases;
}

inline std::vector<Case> Joined(const std::vector<std::vector<Case>>& lists) {
  std::vector<Case> all;
  for (const std::vector<Case>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace shardproof
