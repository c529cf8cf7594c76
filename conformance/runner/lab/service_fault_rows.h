// service_fault_rows.h: which wrong service calls must be reported, and as what?
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/runner/lab/fault_lab.h"

namespace shardproof {

// One call of a good engine that goes wrong, chosen by what it means. Each has an effect.
struct FaultRow {
  const char* what = "";         // in words
  const char* spec = "";         // case id
  const char* requirement = "";  // which must be reported
  const char* call = "";
  EventTest where;
  Fault::Action action = Fault::Action::kDrop;
  int32_t amount = 1;
  int64_t nth = 0;  // among those that where accepts
  int32_t rank = 0;
};

std::vector<FaultRow> ServiceFaultRows();

}  // namespace shardproof
