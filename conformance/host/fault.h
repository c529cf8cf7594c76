// fault.h: which service call goes wrong, and how?
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace shardproof {

struct Fault {
  enum class Action {
    kDrop,       // answers SPF_OK and does nothing
    kDelay,      // happens after the next `amount` calls that enqueue or block
    kReorder,    // changes places with the next call (kDelay by one)
    kDuplicate,  // happens twice
    kCorrupt     // happens with one argument wrong; `amount` chooses which (faulty.cc lists them)
  };
  std::string call;  // name of the table entry, for example "event_wait"
  int64_t nth = 0;   // which call of that name on this rank, from 0
  Action action = Action::kDrop;
  int32_t amount = 1;
  int32_t rank = 0;
  int32_t instance = 0;
};

// "event_wait:12:drop@3" is call 12 of event_wait on rank 3; "communicate:4:corrupt=1@0" has an
// amount. Throws std::invalid_argument that names the part that is wrong.
Fault ParseFault(std::string_view text);
std::string FaultText(const Fault& fault);

}  // namespace shardproof
