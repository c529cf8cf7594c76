// fault.h: which service call goes wrong, and how?
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

struct Fault {
  enum class Action {
    kDrop,       // answers SPF_OK and does nothing
    kDelay,      // happens after the next `amount` calls that enqueue or block
    kReorder,    // changes places with the next call (kDelay by one)
    kDuplicate,  // happens twice
    kCorrupt,    // happens with one argument wrong; `amount` chooses which (faulty.cc lists them)
    kIgnore      // of knob alone: the engine reads it and behaves as if it had another value
  };
  static constexpr int32_t kEveryRank = -1;
  std::string call;  // name of the table entry, for example "event_wait"
  int64_t nth = 0;   // which call of that name on this rank, from 0
  Action action = Action::kDrop;
  int32_t amount = 1;
  int32_t rank = 0;  // or kEveryRank
  int32_t instance = 0;
  // kIgnore: all calls for this knob are answered with `value`; empty: NULL, as if it was not set.
  std::string knob, value;

  bool Hits(int32_t of_rank, int32_t of_instance) const {
    return (rank == kEveryRank || rank == of_rank) && instance == of_instance;
  }
};

// "event_wait:12:drop@3" is call 12 of event_wait on rank 3; "communicate:4:corrupt=1@0" has an
// amount. "knob:recompute:ignore" is a knob that every rank ignores, "knob:microbatches:ignore=1@2"
// one for which rank 2 uses the value 1. Throws std::invalid_argument that names the part that is
// wrong; a knob's name may be any.
Fault ParseFault(std::string_view text);
std::string FaultText(const Fault& fault);
// Names of the table entries of which a call may go wrong.
const std::vector<std::string>& CallsOfFaults();

}  // namespace shardproof
