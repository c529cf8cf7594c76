#include "conformance/runner/isolation/sim_evidence.h"

#include <stdexcept>
#include <utility>

#include "conformance/common/frame.h"

namespace shardproof {

Frame FieldsOf(const RunData& data) {
  Frame fields{data.deadlock ? "1" : "0", std::to_string(static_cast<int64_t>(data.timing_hash)),
               PackFrame(data.notes), PackFrame(data.run.left_behind)};
  for (size_t rank = 0; rank < data.run.traces.size(); ++rank) {
    for (std::string& field : FieldsOf(data.run.traces[rank], data.run.outcomes.at(rank), ""))
      fields.push_back(std::move(field));
  }
  return fields;
}

RunData RunDataOf(const FrameView& fields, const Case& c) {
  constexpr size_t kBefore = 4;
  if (fields.size() != kBefore + kFieldsOfARank * static_cast<size_t>(c.world)) {
    throw std::runtime_error("the evidence of " + Id(c) + " is not of " + std::to_string(c.world) +
                             " ranks");
  }
  const auto list = [](std::string_view bytes) {
    bool bad = false;
    const std::optional<FrameView> texts = FrameIn(&bytes, &bad);
    if (!texts || !bytes.empty()) throw std::runtime_error("the evidence of a run is not whole");
    return std::vector<std::string>(texts->begin(), texts->end());
  };
  RunData data;
  data.run.spec = &c;
  data.deadlock = NumberOf(fields[0], 0, 1) != 0;
  data.timing_hash = static_cast<uint64_t>(NumberOf(fields[1]));
  data.notes = list(fields[2]);
  data.run.left_behind = list(fields[3]);
  for (int32_t rank = 0; rank < c.world; ++rank) {
    const size_t from = kBefore + kFieldsOfARank * static_cast<size_t>(rank);
    RankOutput output = OutputOf(fields, from, rank, c);
    data.run.traces.push_back(std::move(output.trace));
    data.run.outcomes.push_back(std::move(output.outcome));
  }
  return data;
}

}  // namespace shardproof
