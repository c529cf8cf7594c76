#include <algorithm>

#include "conformance/fabric/sim/world.h"

namespace shardproof {
namespace {

std::string Ranks(const std::vector<int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

// Who has not started the operations that a running kernel is made of.
std::string WhoIsMissing(const Rank& rank, const Entry& entry) {
  const Comm* comm = rank.comms[static_cast<size_t>(entry.group)];
  const int32_t me = rank.device.group(entry.group).me;
  std::string text;
  for (size_t i = 0; i < entry.ops.size(); ++i) {
    const CommOp& op = entry.ops[i];
    const std::vector<int32_t> missing = comm->WaitsFor(me, op, entry.positions[i]);
    if (missing.empty()) continue;
    const bool message = op.kind == SPF_SEND || op.kind == SPF_RECV;
    text += (text.empty() ? "" : "; ") + Ranks(missing) + " to start ";
    text += message ? "its side of message #" : "collective #";
    text += std::to_string(entry.positions[i]) + " on " + comm->key();
  }
  return text;
}

std::string WhatItWaitsFor(const Rank& rank, EntryId id) {
  const Entry& entry = rank.device.entry(id);
  if (entry.state == EntryState::kRunning && entry.kind == EntryKind::kKernel) {
    return rank.device.Describe(id) + " has started and waits for " + WhoIsMissing(rank, entry);
  }
  return rank.device.Describe(id) + " cannot start: " + rank.device.WhyQueued(id);
}

}  // namespace

std::string DescribeBlocked(World* world, int32_t index) {
  const Rank& rank = world->rank(index);
  if (rank.host == HostState::kDone && rank.device.pending() == 0) return "";
  std::string text = "rank " + std::to_string(index) + ": ";
  if (rank.host == HostState::kDone) {
    text += "host is done, device work is left";
  } else {
    text += "host waits in " + rank.wait.what;
    if (!rank.device.Done(rank.wait.entry)) text += " for " + rank.device.Describe(rank.wait.entry);
    if (rank.wait.all && rank.wait.all->arrived < rank.wait.members) {
      text += ": " + std::to_string(rank.wait.all->arrived) + " of " +
              std::to_string(rank.wait.members) + " members have called";
    }
  }
  for (const EntryId front : rank.device.Fronts()) text += "\n  " + WhatItWaitsFor(rank, front);
  return text;
}

bool DescribeAddress(World* world, uint64_t address, std::string* text) {
  for (int32_t index = 0; index < world->size(); ++index) {
    const Rank& rank = world->rank(index);
    Place place;
    if (rank.arena.Describe(address, &place)) {
      *text = ToText(place);
      return true;
    }
    if (rank.fiber->OnGuard(address)) {
      *text = "rank " + std::to_string(index) +
              ": stack overflow: raise stack_bytes in the plug-in's table";
      return true;
    }
  }
  return false;
}

}  // namespace shardproof
