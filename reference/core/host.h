// host.h: who owns the order of collectives (knob schedule)?
//
// spf::Host, but for collectives. With schedule = one_communicator the engine owns their order: one
// is in flight at a time, whatever their groups and streams, because each waits for an event behind
// the one issued before it. All ranks issue them in one order, so a device can run them one at a
// time, and chaining them in that order cannot close a circle. Else streams decide.
#pragma once
#include <vector>

#include "conformance/abi/spf.hpp"

namespace reference {

class Host : public spf::Host {
 public:
  using spf::Host::Host;

  // From now on one collective is in flight at a time, of those that are issued through this class
  // and not through an spf::Host&.
  void KeepOneInFlight() { chained_ = true; }
  // One group operation. REQUIRES: all of ops are on one stream.
  void Communicate(const std::vector<spf_collective>& ops);
  // Ends the chain. No collective may follow.
  void EndChain();

 private:
  bool chained_ = false;
  spf_event last_ = nullptr;          // behind the collective issued last; null before the first
  spf_stream last_stream_ = nullptr;  // on which it was issued
};

}  // namespace reference
