// activations.h: when does a value live?
//
// The pass over one microbatch is a list of operations; each node's table says what it reads and
// writes. A value is allocated before the operation that first writes it, and freed after the last
// one that touches it before it is written again. That one rule covers eval (values die in
// forward), training (they live until backward) and recompute (they die in forward and are born
// again in backward).
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "conformance/abi/spf.hpp"

namespace reference {

struct Operation {
  const spf_node* node = nullptr;
  spf_phase phase = SPF_FWD;
  bool recompute = false;

  const spf_uses& uses() const { return node->uses[phase]; }
};

// A value (act) or its gradient (dact), by value id.
struct ValueRef {
  bool gradient = false;
  int32_t value = -1;
  bool operator==(const ValueRef&) const = default;
};

// What dies after each operation.
std::vector<std::vector<ValueRef>> Deaths(const std::vector<Operation>& operations,
                                          int32_t n_values);

// The values of one microbatch. All on one stream.
class Activations {
 public:
  Activations(spf::Host& host, spf_stream stream, int32_t microbatch);

  // Allocates what the operation writes; gradients that several nodes add to start at zero.
  void Before(const Operation& operation);
  void Free(const std::vector<ValueRef>& dead);
  const spf_addr* act() const { return act_.data(); }
  const spf_addr* dact() const { return dact_.data(); }

 private:
  spf_addr& At(const ValueRef& value) {
    return (value.gradient ? dact_ : act_)[static_cast<size_t>(value.value)];
  }

  spf::Host& host_;
  spf_stream stream_;
  int32_t microbatch_;
  std::vector<spf_addr> act_, dact_;
};

}  // namespace reference
