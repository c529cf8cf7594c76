// recorded_parts.h: how is a long recorded run judged in the memory of a short one?
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "conformance/runner/recorded_ends.h"

namespace shardproof {

struct JudgedFolder {
  JudgedTraces judged;
  std::string case_id;  // that the traces name
  int64_t parts = 1;
  std::string whole;  // why a run of which a part had been read was judged whole; else empty
};

// The verdict on the traces of a folder. Runs of programs that are no case of this suite are judged
// in parts of at least `part_events` events (0: whole), as far as that says the same as the whole
// run (checks/parts/README.md). Throws as ReadTraceFolder and JudgeTraces.
JudgedFolder JudgeFolder(const std::filesystem::path& folder, int64_t part_events);

}  // namespace shardproof
