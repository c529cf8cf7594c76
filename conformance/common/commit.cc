#include "conformance/common/version.h"

extern "C" __attribute__((weak)) const char kShardproofCommit[];

namespace shardproof {

std::string Commit() {
  const std::string commit = kShardproofCommit != nullptr ? kShardproofCommit : "";
  return commit == "0" || commit == "redacted" ? "" : commit;  // Bazel's words for nothing
}

std::string VersionText() {
  const std::string commit = Commit();
  return Version() + (commit.empty() ? "" : " (" + commit + ")");
}

}  // namespace shardproof
