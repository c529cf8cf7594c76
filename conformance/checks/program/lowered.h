// lowered.h: what do the checks share that ask how the traces of a run are ordered?
//
// The program that the traces are lowered to, its two orders, and which entry an event is. Each is
// made once, when first asked for.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/checks/program/order.h"
#include "conformance/checks/program/program.h"
#include "conformance/trace/event.h"

namespace shardproof::graph {

// Not for several threads at once.
class Lowered {
 public:
  // Implicit, so that CheckGraph(traces) works. The traces must outlive it.
  Lowered(const std::vector<Trace>& traces,
          Names names = {});  // NOLINT(google-explicit-constructor)
  Lowered(const Lowered&) = delete;
  Lowered& operator=(const Lowered&) = delete;

  const std::vector<Trace>& traces() const { return traces_; }
  // Null when a row refers to something that its trace does not have: why() says it.
  const Program* program() const;
  const std::string& why() const { return why_; }

  // REQUIRES: program() != nullptr.
  MayOrder& may() const;
  MustOrder& must() const;
  // The entry that an event is, or is part of; kNone for events that are no work.
  uint32_t EntryAt(int32_t rank, int64_t event) const;

 private:
  const std::vector<Trace>& traces_;
  const Names names_;
  mutable std::string why_;
  mutable std::unique_ptr<const Program> program_;
  mutable std::unique_ptr<MayOrder> may_;
  mutable std::unique_ptr<MustOrder> must_;
  mutable std::vector<std::vector<uint32_t>> entries_;  // by rank and event
};

}  // namespace shardproof::graph
