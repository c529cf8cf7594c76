// version.h: which release of the suite is this?
#pragma once

namespace shardproof {

// SemVer, as conformance/common/VERSION has it.
const char* Version();

}  // namespace shardproof
