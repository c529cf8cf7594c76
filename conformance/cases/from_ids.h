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

}  // namespace shardproof
