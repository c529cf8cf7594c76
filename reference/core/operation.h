// operation.h: what is issued of a program, and which of its values are meant?
#pragma once
#include "reference/core/tables.h"

namespace reference {

// A node in one phase. recompute: forward again, because backward needs what was not kept.
struct Operation {
  const spf_node* node = nullptr;
  spf_phase phase = SPF_FWD;
  bool recompute = false;
};

// A value (act) or its gradient (dact), by value id.
struct ValueRef {
  bool gradient = false;
  int32_t value = -1;
  bool operator==(const ValueRef&) const = default;
};

inline std::span<const spf_use> UsesOf(const Operation& operation) {
  return UsesOf(*operation.node, operation.phase);
}

}  // namespace reference
