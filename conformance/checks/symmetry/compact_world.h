// compact_world.h: how are the traces of many ranks kept once for all that are alike?
//
// Two ranks are alike if their traces are equal but for the names: which rank it is, which
// communicators its groups are and who is in them, which samples it trains on. Their common trace
// is a shape; a rank is a shape and its names. Nothing is lost: Expand() gives the trace again.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/checks/base/check.h"
#include "conformance/trace/event.h"

namespace shardproof::symmetry {

struct Comm {
  std::string key;
  std::vector<int32_t> members;  // world ranks, in the order of the group
};

struct Shape {
  // Of its first rank, whole: that rank's names are in it.
  Trace trace;
  EngineOutcome outcome;  // of all its ranks
  // By local group: the first one that is the same communicator.
  std::vector<int32_t> first_of;
};

struct Names {
  int32_t shape = -1;
  std::vector<int32_t> comms;    // by local group
  std::vector<int64_t> samples;  // of the events that have one, in their order
};

struct CompactWorld {
  std::vector<Comm> comms;
  std::vector<Shape> shapes;
  std::vector<Names> ranks;

  int32_t world() const { return static_cast<int32_t>(ranks.size()); }
  const Shape& ShapeOf(int32_t rank) const;
  const Comm& CommOf(int32_t rank, int32_t local_group) const;
  Trace Expand(int32_t rank) const;
};

class CompactWorldBuilder {
 public:
  // Ranks from 0 on, each once.
  void Add(Trace trace, EngineOutcome outcome);
  CompactWorld Take() { return std::move(made_); }

 private:
  int32_t CommId(const GroupInfo& group);

  CompactWorld made_;
  std::map<std::string, std::vector<int32_t>> comm_ids_;  // by key: one for each list of members
  std::map<std::string, int32_t> shape_ids_;              // by what is equal for all its ranks
};

// By local group: the first one that is the same communicator.
std::vector<int32_t> FirstOf(const Names& names);

// What in a world that was read from somewhere fits no traces, in words: a rank that is no member
// of a group of its own, names that its shape has no place for; empty: nothing.
std::string Contradiction(const CompactWorld& world);

// The members of a created group as ranks of its parent, if that is what the event says; empty: it
// says something else.
std::vector<int64_t> ListOfMembers(const Comm& parent, const Comm& made);

}  // namespace shardproof::symmetry
