// wait_graph.h: which start or completion must precede which other one?
//
// Two edge sets. What an operation MAY wait for (deadlock): all members of a collective,
// communicator order across streams, and what a profile adds. What it MUST imply (races): only
// those members whose data the result needs.
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/checks/program/digraph.h"
#include "conformance/checks/program/program.h"

namespace shardproof::graph {

// Assumptions about the machine, by what they add on each device.
enum class Profile : uint8_t {
  kE0,        // nothing: streams, events, host and communicator order only
  kE1,        // communicator kernels start in issue order
  kE2,        // one hardware queue for all entries
  kE2s,       // communicator kernels run one after the other in issue order
  kConnects,  // E0, where the first message from one rank to another is a meeting of their hosts
              // (connections.h)
  kEager      // E0, where an operation waits only for the members whose data it needs
};

struct GraphOptions {
  Profile profile = Profile::kE0;
  bool communicator_order = true;  // false: races
  // False: a kernel of one operation is complete when the operation is (deadlock). True: each
  // kernel completes apart.
  bool separate_completion = false;
  // Wrong on purpose, to show what it would say: a kernel of several operations is one operation.
  bool group_as_one_operation = false;
  // For runs that were ended: a rank that did not issue its part of an operation would have, after
  // what holds its host.
  bool expect_missing = false;
};

struct WaitGraph {
  Digraph graph;
  std::vector<uint32_t> start, complete;  // nodes by entry; equal for local entries
  std::vector<uint32_t>
      joint;  // nodes by operation; kUnplaced in the kEager and race graphs if not needed
  std::vector<bool> never;  // by node; empty: none
  // By node: entry, or operations' nodes as ~operation.
  std::vector<int64_t> what;
  Slice connections;  // kConnects: nodes at which two hosts meet
};

WaitGraph BuildGraph(const Program& program, const GraphOptions& options);

// The members (by index into the operation's parts) that part's completion implies the start of,
// when not all or none. all: every member. Follows from the kind, the counts and the part's role.
struct Needs {
  bool all = false;
  std::vector<uint32_t> parts;  // positions in the list given
};
Needs WhatMustHaveStarted(const Program& program, const std::vector<uint32_t>& parts, size_t of);

}  // namespace shardproof::graph
