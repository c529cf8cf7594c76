#include "conformance/checks/program/lowered.h"

#include <stdexcept>
#include <utility>

#include "conformance/common/at.h"

namespace shardproof::graph {

Lowered::Lowered(const std::vector<Trace>& traces, Names names)
    : traces_(traces), names_(std::move(names)) {}

const Program* Lowered::program() const {
  if (program_ != nullptr || !why_.empty()) return program_.get();
  try {
    auto program = std::make_unique<Program>(Lower(traces_));
    program->names = names_;
    program_ = std::move(program);
  } catch (const std::invalid_argument& error) {
    why_ = error.what();
  }
  return program_.get();
}

MayOrder& Lowered::may() const {
  if (may_ == nullptr) may_ = std::make_unique<MayOrder>(*program());
  return *may_;
}

MustOrder& Lowered::must() const {
  if (must_ == nullptr) must_ = std::make_unique<MustOrder>(*program());
  return *must_;
}

uint32_t Lowered::EntryAt(int32_t rank, int64_t event) const {
  if (entries_.empty()) {
    const Program& lowered = *program();
    for (const Trace& trace : traces_) entries_.emplace_back(trace.events.size(), kNone);
    for (uint32_t e = 0; e < lowered.entries.size(); ++e) {
      const Entry& entry = lowered.entries[e];
      std::vector<uint32_t>& of_rank = At(entries_, entry.rank);
      of_rank[entry.event] = e;
      for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p)
        of_rank[lowered.parts[p].event] = e;
    }
  }
  return At(At(entries_, rank), event);
}

}  // namespace shardproof::graph
