// brought.h: what did each collective carry, by the meaning of its bytes and not by its label?
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace shardproof {

struct Brought {
  bool params = false, grads = false;
  int32_t unit = -1;            // of the first parameter: module id; -1: it is in none
  bool label_fits = false;      // the label names a module of that unit
  std::set<int32_t> keys = {};  // of the parameters
};
// By event, those that carried parameters or gradients.
using BroughtByEvent = std::map<int64_t, Brought>;

class Analysis;
// By rank; empty if meaning could not be followed.
std::vector<BroughtByEvent> WhatIsBrought(const Analysis& a);

}  // namespace shardproof
