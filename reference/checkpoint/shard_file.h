// shard_file.h: how is one rank's part of a checkpoint stored?
//
// One file per rank: a text header, then fp32 values, little-endian, in the order of the header.
//     reference-checkpoint 1
//     updates <Adam's t>
//     pieces <n>
//     <kind> <offset> <count> <parameter name>      n lines; kind: weight, exp_avg or exp_avg_sq
//     end
// offset and count are elements of the logical tensor, so a file says nothing about ranks, buckets
// or strategies, and any number of ranks can load what any other number has saved.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace reference {

struct ShardPiece {
  std::string kind, name;
  int64_t offset = 0;
  std::vector<float> values;
};

// Writes aside, flushes, renames, flushes the folder: the file is either whole or not there. Throws
// Failed.
void WriteShardFile(const std::string& folder, int32_t rank, int64_t updates,
                    const std::vector<ShardPiece>& pieces);

// All files of a folder, by what they hold. Reads headers at once and values when asked.
class ShardFolder {
 public:
  explicit ShardFolder(const std::string& folder);  // throws Failed
  int64_t updates() const { return updates_; }
  // Elements [offset, offset + count) of a tensor, whichever ranks saved them. Throws Failed if
  // some are nowhere.
  void Read(const std::string& kind, const std::string& name, int64_t offset, int64_t count,
            float* out) const;

 private:
  struct Piece {
    std::string path;
    int64_t offset = 0, count = 0;
    int64_t position = 0;  // bytes, in the file
  };
  void Index(const std::string& path);

  std::string folder_;
  int64_t updates_ = -1;
  std::map<std::pair<std::string, std::string>, std::vector<Piece>> pieces_;
};

}  // namespace reference
