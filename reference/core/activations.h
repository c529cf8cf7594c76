// activations.h: where is a value of one microbatch, and how many rows does it have?
//
// When a value lives is decided by the plan (plan/program.h). A dynamic value has as many rows as
// its counts say, maybe none; then it has no memory either.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "conformance/abi/spf.hpp"
#include "reference/core/counts.h"
#include "reference/core/operation.h"

namespace reference {

// The values of one microbatch, and what the host knows about their sizes. A value belongs to the
// stream of its first writer; who frees it on another one has ordered that stream after every
// reader.
class Activations {
 public:
  Activations(spf::Host& host, const spf_program& program, int32_t microbatch);

  // Allocates what the operation writes on the stream where it will run; gradients that several
  // nodes add to start at zero. Blocks the host where the size depends on counts that it has not
  // seen yet.
  void Before(const Operation& operation, spf_stream stream);
  // Counts that the operation has written start on their way to the host.
  void After(const Operation& operation, spf_stream stream);
  void Free(const std::vector<ValueRef>& dead, spf_stream stream);
  // A value that no operation writes, because it is received.
  spf_addr Allocate(const ValueRef& value, spf_stream stream, int32_t module = -1);

  spf_addr AddressOf(const ValueRef& value) const {
    return reference::At(value.gradient ? dact_ : act_, value.value);
  }
  const spf_addr* act() const { return act_.data(); }
  const spf_addr* dact() const { return dact_.data(); }
  // Rows of every value that has been allocated, by value id.
  const int64_t* rows() const { return rows_.data(); }
  Counts& counts() { return counts_; }

 private:
  spf_addr& At(const ValueRef& value) {
    return reference::At(value.gradient ? dact_ : act_, value.value);
  }
  int64_t RowsOf(int32_t value);

  spf::Host& host_;
  int32_t microbatch_;
  Counts counts_;
  std::vector<spf_addr> act_, dact_;
  std::vector<int64_t> rows_;
};

}  // namespace reference
