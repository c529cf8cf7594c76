// connections.h: which launches connect two ranks, where a library does so at their first message?
//
// As NCCL does it (ncclTransportP2pSetup, src/transport.cc of 2.28.9): a launch goes through the
// ranks that it connects by their distance in the communicator, waits at each until the other one
// has come to the same, and ends when those that it connected have gone through theirs. Of two
// ranks that are opposite each other both directions are one message, if a launch has both.
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/checks/program/program.h"

namespace shardproof::graph {

// The first message with elements from one rank to another, on streams.
struct Connection {
  uint32_t operation = 0;
  int32_t distance = 0;               // from the sender to the receiver, among the members
  uint32_t sender = 0, receiver = 0;  // entries
  uint32_t with = 0;  // the first of those that are one message with it; itself: it is alone
};
// In the order of the sequences.
std::vector<Connection> ConnectionsOf(const Program& program);

}  // namespace shardproof::graph
