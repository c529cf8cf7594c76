// overlap_work.h: what gathers, reduces and computes a rank in its train steps?
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <vector>

#include "conformance/checks/graph/brought.h"
#include "conformance/checks/graph/overlap_expected.h"
#include "conformance/checks/graph/read_buckets.h"
#include "conformance/checks/program/program.h"

namespace shardproof::overlap {

// One rank's work of one instance, in issue order.
struct Work {
  std::vector<uint32_t> gathers, reductions, computes;
  std::vector<uint32_t> on_compute;  // all on streams that compute, waits too
  // By entry call: modules; or buckets, as blocks that receive them, which may be new ones in each
  // step.
  std::map<int32_t, std::set<int32_t>> gathered, reduced;
  graph::GatheredBuckets buckets;
  std::map<int32_t, std::map<int32_t, int64_t>>
      elements;  // of reductions: by entry call and bucket
  // With outer sharding, by gather: the last gather over outer ranks that wrote what it sends.
  std::map<uint32_t, uint32_t> filled_up;
};

// Reads programs. Both arguments outlive it.
class Collector {
 public:
  Collector(const graph::Program& program, const std::vector<BroughtByEvent>& brought)
      : program_(program), brought_(brought) {}

  Work Collect(size_t rank, int32_t instance, const Expected& expected) const;

 private:
  // By bytes; null: they do not tell.
  const Brought* BroughtOf(const graph::Part& part) const;
  // Do they tell of what the rank's instance carries of this kind?
  bool BytesTell(size_t rank, int32_t instance, bool Brought::*carried) const;
  // by_bytes: by what it carried alone; else by its label.
  bool Is(uint32_t e, std::initializer_list<int> kinds, std::initializer_list<int> purposes,
          bool Brought::*carried, bool by_bytes) const;
  // A label need not be there, nor be true.
  int32_t Unit(const graph::Part& part, bool by_bytes) const;
  int64_t ElementsOf(uint32_t e) const;
  std::set<int32_t> KeysOf(uint32_t e) const;
  // That it reads, or writes.
  std::vector<Range> Ranges(uint32_t e, uint8_t access) const;

  const graph::Program& program_;
  const std::vector<BroughtByEvent>& brought_;
};

}  // namespace shardproof::overlap
