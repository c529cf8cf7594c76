// results_due.h: which results must be published, where no numbers are kept to compare them with?
#pragma once
#include <vector>

#include "conformance/checks/base/analysis.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {

// By instance: the entry calls of its script, each with the names and sizes of what it publishes
// (names_only). CheckNumerics judges with it that results are whole (FS-28, FS-34, GE-29, GE-31),
// and nothing else. Every train step updates: norms that an engine reads on such a fabric are those
// of zeros, above no threshold. REQUIRES: the run has a case, which is legal.
std::vector<OracleRun> ResultsDue(const Analysis& a);

}  // namespace shardproof
