#include "reference/checkpoint/shard_report.h"

#include <sstream>

#include "reference/checkpoint/checkpoint_folder.h"

namespace reference {

std::string ShardReport::Text() const {
  std::ostringstream text;
  text << file.bytes << ' ' << file.header_crc;
  for (uint32_t crc : crcs) text << ' ' << crc;
  return text.str();
}

ShardReport ShardReport::Parse(const std::string& text) {
  std::istringstream in(text);
  ShardReport report;
  in >> report.file.bytes >> report.file.header_crc;
  for (uint32_t crc = 0; in >> crc;) report.crcs.push_back(crc);
  return report;
}

Index IndexOf(int64_t generation, const SavePlan& plan, const std::vector<ShardReport>& reports) {
  Index index;
  index.generation = generation;
  std::vector<size_t> next(reports.size());
  for (const SavePart& part : plan) {
    const std::string file = CheckpointFolder::ShardName(generation, part.writer);
    std::map<int32_t, uint32_t> crcs;
    for (int32_t rank : part.holders)
      crcs[rank] = reports.begin()[rank].crcs.at(next.begin()[rank]++);
    const uint32_t crc = crcs.at(part.writer);
    for (const auto& [rank, other] : crcs) {
      if (other == crc) continue;
      throw CheckpointError("cannot save tensor " + part.slice.tensor + ": " + part.slice.Text() +
                            " differ between ranks " + std::to_string(part.writer) + " and " +
                            std::to_string(rank) + ", which hold replicas");
    }
    index.files[file] = reports.begin()[part.writer].file;
    StoredTensor& tensor = index.tensors[part.slice.tensor];
    tensor.facts = part.slice.facts;
    tensor.slices.push_back({file, KeyOf(part.slice), part.slice.offset, part.slice.count, crc});
  }
  return index;
}

}  // namespace reference
