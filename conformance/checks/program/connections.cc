#include "conformance/checks/program/connections.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "conformance/common/at.h"

namespace shardproof::graph {
namespace {

bool HasElements(const Program& program, uint32_t part) {
  return program.event(program.parts[part]).count > 0;
}

int32_t MemberOf(const Communicator& communicator, int32_t rank) {
  const auto found = std::find(communicator.ranks.begin(), communicator.ranks.end(), rank);
  return static_cast<int32_t>(found - communicator.ranks.begin());
}

// Both of a sequence's first message with elements, by entry; false: there is none on streams.
bool FirstMessage(const Program& program, const Sequence& sequence, Connection* connection) {
  if (sequence.kind != Sequence::Kind::kMessages || sequence.parts.size() != 2) return false;
  const std::vector<uint32_t>&sends = sequence.parts[0], &receives = sequence.parts[1];
  const size_t both = std::min(sends.size(), receives.size());
  size_t position = 0;
  while (position < both && !HasElements(program, sends[position])) ++position;
  if (position == both) return false;
  connection->operation = sequence.first_operation + static_cast<uint32_t>(position);
  connection->sender = program.parts[sends[position]].entry;
  connection->receiver = program.parts[receives[position]].entry;
  return program.entries[connection->sender].kind == EntryKind::kKernel &&
         program.entries[connection->receiver].kind == EntryKind::kKernel;
}

}  // namespace

std::vector<Connection> ConnectionsOf(const Program& program) {
  std::vector<Connection> connections;
  std::map<std::tuple<int32_t, int32_t, int32_t>, size_t> opposite;  // communicator, from, to
  for (const Sequence& sequence : program.sequences) {
    Connection one;
    if (!FirstMessage(program, sequence, &one)) continue;
    const Communicator& communicator = At(program.communicators, sequence.communicator);
    const auto members = Length(communicator.ranks);
    const int32_t from = MemberOf(communicator, sequence.ranks[0]);
    const int32_t to = MemberOf(communicator, sequence.ranks[1]);
    one.distance = ((to - from) % members + members) % members;
    const auto place = connections.size();
    one.with = static_cast<uint32_t>(place);
    if (2 * one.distance == members) {
      opposite[{sequence.communicator, from, to}] = place;
      const auto back = opposite.find({sequence.communicator, to, from});
      if (back != opposite.end()) {
        const Connection& other = connections[back->second];
        if (other.receiver == one.sender || other.sender == one.receiver)
          one.with = static_cast<uint32_t>(back->second);
      }
    }
    connections.push_back(one);
  }
  return connections;
}

}  // namespace shardproof::graph
