// chosen.h: which of the cases of a profile did the user choose?
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/runner/options.h"

namespace shardproof {

// What ParseId says; where a token is not known, with the nearest id. Throws std::invalid_argument,
// too, if no model can have the case's sizes.
Case CaseOfId(const std::string& id);

// Every `of`-th of a list, from number `number` on.
struct Shard {
  size_t number = 1, of = 1;
  bool Has(size_t place) const { return place % of + 1 == number; }  // from 0 on
};
// "2/4"; empty: all. Throws std::invalid_argument for what is none.
Shard ParseShard(const std::string& text);

// Takes from the cases what --select, --exclude and --shard leave out: the same cases wherever it
// is called. Answers a line that says so; empty: nothing was chosen. Throws std::invalid_argument
// for a shard that is none, and if nothing is left.
std::string KeepChosen(const Options& options, std::vector<Case>* cases);

}  // namespace shardproof
