// edits_for_test.h: ways to change the groups of a small run, and its case.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {

inline void Experts(InstanceSpec& spec) {
  spec.ep = 2;
  spec.model.experts = true;
}

// Every rank's group of this name, edited.
inline void EditGroups(MiniRun& mini, const std::string& name,
                       const std::function<void(GroupInfo&, const Trace&)>& edit) {
  for (Trace& trace : mini.run.traces) {
    for (GroupInfo& group : trace.groups) {
      if (group.name == name) edit(group, trace);
    }
  }
}
inline std::vector<int32_t> MembersOf(const Trace& trace, const std::string& name) {
  for (const GroupInfo& group : trace.groups) {
    if (group.name == name) return group.world_ranks;
  }
  return {};
}

}  // namespace shardproof
