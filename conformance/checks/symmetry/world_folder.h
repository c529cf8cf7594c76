// world_folder.h: how do the traces of many ranks lie on disk, those that are alike once?
//
// A folder holds a trace file for the first rank of each shape (trace/FORMAT.md) and names.jsonl,
// which says of every rank whose trace is like its own, and its names. README.md has the format.
#pragma once
#include <filesystem>

#include "conformance/checks/symmetry/compact_world.h"

namespace shardproof::symmetry {

// As WriteTraceFolder: makes the folder, removes what an earlier run left of traces and names.
void WriteWorldFolder(const CompactWorld& world, const std::filesystem::path& folder);

// Whether it holds names, and fewer traces than ranks.
bool IsWorldFolder(const std::filesystem::path& folder);

// Outcomes are left as they are by default. Throws TraceError, which names file and line: what is
// no such folder, or says what its traces contradict.
CompactWorld ReadWorldFolder(const std::filesystem::path& folder);

}  // namespace shardproof::symmetry
