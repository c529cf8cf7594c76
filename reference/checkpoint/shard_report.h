// shard_report.h: how do what all ranks wrote become one index?
#pragma once
#include "reference/checkpoint/index.h"
#include "reference/checkpoint/save_plan.h"

namespace reference {

// What a rank tells the others of its shard: size and header of the file, and the checksum of every
// part that it holds, in the order of the plan.
struct ShardReport {
  StoredFile file;
  std::vector<uint32_t> crcs;

  std::string Text() const;
  static ShardReport Parse(const std::string& text);
};

// reports: by rank. Throws CheckpointError if replicas differ: one of them is wrong then, and
// nobody knows which.
Index IndexOf(int64_t generation, const SavePlan& plan, const std::vector<ShardReport>& reports);

}  // namespace reference
