// windows.h: from when to when were a unit's full parameters materialised on a rank?
//
// A window opens when a gather brings a unit's elements and closes when the last of those bytes is
// freed, discarded or overwritten; with reshard_after_forward = n, after the unit's forward, when
// no more than an n-th is left. Times are places in the host's issue order, in which memory is
// counted.
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

struct Window {
  int32_t instance = 0;
  int32_t unit = -1;  // module id; -1: parameters outside units
  int32_t call = -1;
  int64_t gather = -1;       // event that opened it
  int64_t last_gather = -1;  // the last one that added to it
  int64_t release = -1;      // event that closed it; -1: never
  int64_t bytes = 0;         // of parameter elements
  int8_t side = -1;  // with backward_param_copies: its bytes are read in forward (0), backward (1)
  std::vector<int64_t> reads;  // compute events of the unit, or that read its bytes, in issue order
  bool OpenAt(int64_t event) const { return gather < event && (release < 0 || event < release); }
  // The first read after the event, or -1.
  int64_t NextRead(int64_t event) const;
  // The first read in backward, forward that is run again included, or -1.
  int64_t FirstInBackward(const Trace& trace) const;
  // Some microbatch has read it in forward before the event and reads it in backward behind it: in
  // a pipeline several microbatches are under way.
  bool BetweenPasses(const Trace& trace, int64_t event) const;
  // So that with reshard_after_forward = 0 it has to stay.
  bool KeptInPipeline(const InstanceSpec& spec, const Trace& trace, int64_t event) const;
};

// A compute event that reads parameters.
struct ParamUse {
  int64_t event = -1;
  int32_t instance = 0;
  std::vector<int32_t> units;  // of the parameters that it reads; -1 for those outside units
};

struct RankWindows {
  std::vector<Window> windows;  // in order of gather
  std::vector<ParamUse> uses;   // in issue order
};

// REQUIRES: a.has_flow().
RankWindows FindWindows(const Analysis& a, int32_t rank);

}  // namespace shardproof
