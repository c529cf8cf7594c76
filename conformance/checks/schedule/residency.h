// residency.h: from when to when does a rank hold the gathered parameters of a unit, dense and
// experts apart?
//
// By bytes: an interval opens when a gather brings elements of the group and closes when the last
// of those bytes is freed, discarded or overwritten. Places are in the host's issue order.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/schedule/tokens.h"

namespace shardproof::schedule {

// Elements [begin, end) of a parameter.
struct Elements {
  int32_t key = -1;
  int64_t begin = 0, end = 0;
};

struct Resident {
  int32_t instance = 0, call = -1;
  int32_t unit = -1;  // module; -1: parameters outside units
  bool expert = false;
  std::vector<Elements> elements;  // in order of arrival
  int64_t gather = -1, last_gather = -1;
  int64_t release = -1;  // -1: never
  int32_t alloc = -1;
  std::vector<int64_t> reads;  // compute events that read its bytes
  bool OpenAt(int64_t event) const { return gather <= event && (release < 0 || event < release); }
  bool HasSomeOf(const Elements& other) const;
};

// In order of gather. REQUIRES: a.has_flow().
std::vector<Resident> FindResidents(const Analysis& a, int32_t rank);
std::string Text(const Analysis& a, int32_t rank,
                 const Resident& resident);  // "experts of layers.1"

}  // namespace shardproof::schedule
