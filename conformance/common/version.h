// version.h: which release of the suite is this?
#pragma once
#include <string>

namespace shardproof {

// SemVer, as conformance/common/VERSION has it.
const char* Version();

// The commit that the program was linked at, "7df33f0d1e2c", with "+changes" if files differed from
// it; empty: it was not built from a repository.
std::string Commit();

// "1.3.0 (7df33f0d1e2c)"
std::string VersionText();

}  // namespace shardproof
