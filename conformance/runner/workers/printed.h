// printed.h: what did foreign code print, and while whose code ran?
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "conformance/fabric/process/printed_file.h"
#include "conformance/host/progress.h"

namespace shardproof {

// Of a process that has ended, in which whoever made a rank's code run noted how far the file had
// come (Progress). By rank; -1: while no rank's code ran.
std::map<int32_t, std::string> PrintedByRank(const PrintedFile& file, const Progress& progress);

}  // namespace shardproof
