#include "conformance/common/version.h"

extern "C" __attribute__((weak)) const char kShardproofCommit[];

namespace shardproof {

std::string Commit() {
  const std::string stamp = kShardproofCommit != nullptr ? kShardproofCommit : "";
  const std::string ours = "shardproof:";  // another workspace stamps its own commit
  return stamp.starts_with(ours) ? stamp.substr(ours.size()) : "";
}

std::string VersionText() {
  const std::string commit = Commit();
  return Version() + (commit.empty() ? "" : " (" + commit + ")");
}

}  // namespace shardproof
