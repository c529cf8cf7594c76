// ordering.h: does one piece of work of a run always precede another, and through what?
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/program/digraph.h"
#include "conformance/checks/program/program.h"
#include "conformance/checks/program/wait_graph.h"

namespace shardproof::schedule {

class Ordering {
 public:
  explicit Ordering(const Analysis& a);
  Ordering(const Ordering&) = delete;
  Ordering& operator=(const Ordering&) = delete;

  bool usable() const { return why_.empty(); }
  const std::string& why() const { return why_; }

  // The first is over before the second starts, under every timing. False for events that are no
  // work.
  bool Precedes(int32_t rank, int64_t first, int64_t second);
  bool Unordered(int32_t rank, int64_t a, int64_t b) {
    return !Precedes(rank, a, b) && !Precedes(rank, b, a);
  }
  // What leads from the first to the second, at most six steps in words.
  std::string Path(int32_t rank, int64_t first, int64_t second);

 private:
  uint32_t EntryAt(int32_t rank, int64_t event) const;
  std::string Name(uint32_t node) const;
  const Analysis& a_;
  std::string why_;
  std::unique_ptr<graph::Program> program_;
  graph::WaitGraph graph_;
  graph::TopologicalOrder order_;
  std::unique_ptr<graph::Reachability> reachability_;
  std::map<std::pair<int32_t, int64_t>, uint32_t> entries_;  // (rank, event)
};

}  // namespace shardproof::schedule
