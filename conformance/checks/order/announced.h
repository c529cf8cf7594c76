// announced.h: which hooks did an engine announce, and what did it compute around them?
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <vector>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

// Everything of one microbatch of one entry call on one rank.
struct Microbatch {
  std::map<int32_t, std::vector<int64_t>> hooks;                       // root hooks: hook -> events
  std::map<int32_t, std::map<int32_t, std::vector<int64_t>>> of_unit;  // hook -> unit -> events
  std::map<int32_t, std::vector<int64_t>> forward, backward;           // unit -> compute events
  std::map<int32_t, std::vector<int64_t>> entered;  // module -> forward computes of it and below it
  std::vector<int64_t> any_forward, any_backward;
  std::set<int32_t> with_gradients;  // units whose nodes add to gradients of their own
};

struct EntryCall {
  std::map<int32_t, Microbatch> microbatches;
  std::map<int32_t, std::vector<int64_t>>
      step_hooks;              // FINISH, INSTALL, ZERO_GRAD, OPTIMIZER_STEP, START
  std::vector<int64_t> marks;  // all, in order
  int64_t end = -1;
  bool ok = false, train = false;
};

// Marks and computes of one engine instance on one rank.
struct Announced {
  std::map<int32_t, EntryCall> calls;  // by entry call
  std::set<int32_t> hooks;             // spf_hook, announced at all
  bool Any(std::initializer_list<int32_t> of) const {
    return std::any_of(of.begin(), of.end(), [&](int32_t hook) { return hooks.contains(hook); });
  }
};

Announced AnnouncedBy(const Analysis& a, int32_t rank, int instance);

}  // namespace shardproof
