// cite.h: what does a verdict of one family mean for a row of another?
#pragma once
#include <vector>

#include "conformance/checks/base/check.h"

namespace shardproof {

// Rows that speak for another one where a case asks for it.
struct CitedRow {
  const char* id;
  std::vector<const char*> rows;
};

// id is judged if one of its rows is, misses what one of them misses, and has the first finding of
// these rows. note: "with expert parallelism".
void Cite(const CitedRow& row, const CheckResult& from, const char* note, CheckResult& to);

}  // namespace shardproof
