#include "conformance/runner/workers/printed.h"

#include <algorithm>

namespace shardproof {

std::map<int32_t, std::string> PrintedByRank(const PrintedFile& file, const Progress& progress) {
  const std::string all = file.All();
  std::map<int32_t, std::string> by_rank;
  size_t from = 0;
  const auto give = [&](int32_t rank, size_t to) {
    const size_t until = std::clamp(to, from, all.size());
    const bool known = rank >= 0 && rank < INT32_MAX;
    if (until > from) by_rank[known ? rank : -1] += all.substr(from, until - from);
    from = until;
  };
  const uint32_t stretches = std::min(progress.stretches.load(), Progress::kStretches);
  for (uint32_t i = 0; i < stretches; ++i) give(progress.stretch[i].rank, progress.stretch[i].end);
  give(progress.rank.load(), all.size());
  for (auto& [rank, text] : by_rank) text = ClippedPrint(text);
  return by_rank;
}

}  // namespace shardproof
