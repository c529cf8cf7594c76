// overlap_check.h: does communication that should hide under compute really have nothing that
// orders the two?
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/checks/base/check.h"
#include "conformance/checks/program/lowered.h"

namespace shardproof {

// What a collective carried, by the meaning of its bytes and not by its label.
struct Brought {
  bool params = false, grads = false;
  int32_t unit = -1;        // of the first parameter: module id; -1: it is in none
  bool label_fits = false;  // the label names a module of that unit
};
using BroughtByEvent = std::map<int64_t, Brought>;

class Analysis;
// By rank; empty if meaning could not be followed.
std::vector<BroughtByEvent> WhatIsBrought(const Analysis& a);

// GE-12, GE-13, GE-14, for train steps of instances that ask for overlap. Traces that do not match
// or can hang are not checkable. Notes: how many gathers and reductions can hide, and the exposed
// time under a cost model. brought: by rank, or empty; then labels alone tell what travels.
CheckResult CheckOverlap(const Case& spec, const graph::Lowered& run,
                         const std::vector<BroughtByEvent>& brought = {});

}  // namespace shardproof
