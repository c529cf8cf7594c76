// refusal_cases.h: what does a host refuse at once? A list that is run on every fabric.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/abi/spf.hpp"
#include "conformance/host/host.h"

namespace shardproof {

// A host with one of everything, inside train_step 0 of a two-layer model.
struct RefusalScene {
  spf_host* h = nullptr;
  spf_host* other = nullptr;  // another engine instance on the same rank
  spf_stream stream = nullptr, dead_stream = nullptr, foreign_stream = nullptr;
  spf_event event = nullptr, dead_event = nullptr, foreign_event = nullptr;
  spf_group world = nullptr, foreign_world = nullptr, alone = nullptr, dead_group = nullptr;
  spf_addr block = 0;       // 256 bytes of device memory
  spf_addr pinned = 0;      // 64 bytes
  spf_addr freed = 0;       // was a block; nothing lies there now
  spf_addr registered = 0;  // 64 bytes, with the group alone
  int32_t rank = 0, n = 1;
};

struct RefusalCase {
  std::string name;
  std::string call;               // the message begins with it
  std::vector<std::string> says;  // each stands in the message
  std::function<spf_status(RefusalScene&)> act;
};

std::vector<RefusalCase> RefusalCases();
// Those of refusal_launches.cc and refusal_numbers.cc, which RefusalCases() calls.
void AddLaunchCases(std::vector<RefusalCase>& cases);
void AddNumberCases(std::vector<RefusalCase>& cases);

// Builds the scene on a fabric, runs the cases, and answers what went wrong ("" if nothing): a call
// that was not refused, a message without what it must say, or a trace that cannot be read back. A
// refused communicate ends the run, so those cases come alone.
std::string RunRefusalCases(Fabric& fabric, const std::vector<RefusalCase>& cases);

}  // namespace shardproof
