#include "conformance/checks/base/contents.h"

#include <algorithm>
#include <cstdint>

namespace shardproof {

int32_t ContributionSets::Intern(std::vector<Contribution> set) {
  if (set.empty()) return 0;
  const auto [at, added] = ids_.try_emplace(std::move(set), static_cast<int32_t>(sets_.size()));
  if (added) sets_.push_back(at->first);
  return at->second;
}

int32_t ContributionSets::Union(int32_t a, int32_t b) {
  if (a == 0) return b;
  if (b == 0) return a;
  if (a > b) std::swap(a, b);
  const auto known = unions_.find({a, b});
  if (known != unions_.end()) return known->second;
  std::vector<Contribution> all;
  const std::vector<Contribution>&left = Get(a), &right = Get(b);
  std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(all));
  std::vector<Contribution> merged;
  for (Contribution next : all) {
    const int16_t times = next.times;
    next.times = 1;
    if (!merged.empty()) {
      Contribution last = merged.back();
      last.times = 1;
      if (last == next) {
        merged.back().times =
            static_cast<int16_t>(std::min(merged.back().times + times, INT16_MAX));
        continue;
      }
    }
    next.times = times;
    merged.push_back(next);
  }
  const int32_t id = Intern(std::move(merged));
  unions_[{a, b}] = id;
  return id;
}

bool Content::SameAs(const Content& other) const {
  if (kind != other.kind) return false;
  if (kind != Kind::kParam && kind != Kind::kGrad) return true;
  return instance == other.instance && param == other.param && tag == other.tag &&
         width == other.width;
}

Content Content::At(int64_t byte) const {
  Content moved = *this;
  moved.element += byte / width;
  return moved;
}

void BlockContents::Cut(int64_t at) {
  auto after = pieces_.upper_bound(at);
  if (after == pieces_.begin()) return;
  auto& [begin, piece] = *std::prev(after);
  if (begin == at || piece.first <= at) return;
  pieces_.emplace(at, std::make_pair(piece.first, piece.second.At(at - begin)));
  piece.first = at;
}

std::vector<Chunk> BlockContents::Get(int64_t offset, int64_t length) const {
  std::vector<Chunk> chunks;
  const int64_t end = offset + length;
  auto it = pieces_.upper_bound(offset);
  if (it != pieces_.begin()) --it;
  int64_t at = offset;
  for (; it != pieces_.end() && it->first < end; ++it) {
    const int64_t begin = std::max(it->first, offset), stop = std::min(it->second.first, end);
    if (stop <= at) continue;
    if (begin > at) chunks.push_back({at - offset, begin - at, Content{}});
    chunks.push_back({begin - offset, stop - begin, it->second.second.At(begin - it->first)});
    at = stop;
  }
  if (at < end) chunks.push_back({at - offset, end - at, Content{}});
  return chunks;
}

void BlockContents::Put(int64_t offset, int64_t length, const Content& content) {
  if (length <= 0) return;
  Cut(offset);
  Cut(offset + length);
  pieces_.erase(pieces_.lower_bound(offset), pieces_.lower_bound(offset + length));
  if (content.kind == Content::Kind::kPoison) return;
  // Joins with the piece before if it goes on there, so that pieces do not multiply over the steps.
  auto after = pieces_.lower_bound(offset);
  if (after != pieces_.begin()) {
    auto& [begin, piece] = *std::prev(after);
    const bool counted =
        content.kind == Content::Kind::kParam || content.kind == Content::Kind::kGrad;
    if (piece.first == offset && piece.second.SameAs(content) &&
        (!counted || piece.second.At(offset - begin).element == content.element)) {
      piece.first = offset + length;
      return;
    }
  }
  pieces_.emplace(offset, std::make_pair(offset + length, content));
}

void BlockContents::Put(int64_t offset, const std::vector<Chunk>& chunks) {
  for (const Chunk& chunk : chunks) Put(offset + chunk.offset, chunk.length, chunk.content);
}

void ZipChunks(const std::vector<Chunk>& x, int64_t x_length, const std::vector<Chunk>& y,
               int64_t y_length,
               const std::function<void(int64_t, int64_t, const Content&, const Content&)>& visit) {
  if (x_length <= 0 || y_length <= 0) return;
  // Offsets in x are scaled to y: both have the same number of elements.
  // Lengths may be whatever a trace says, so a product of two needs more than 64 bits.
  const auto times = [](int64_t bytes, int64_t by, int64_t over) {
    return static_cast<int64_t>(static_cast<__int128>(bytes) * by / over);
  };
  const auto scaled = [&](int64_t bytes) { return times(bytes, y_length, x_length); };
  size_t i = 0, j = 0;
  int64_t at = 0;
  while (at < y_length && i < x.size() && j < y.size()) {
    const int64_t x_begin = scaled(x[i].offset), x_end = scaled(x[i].offset + x[i].length);
    const int64_t y_begin = y[j].offset, y_end = y[j].offset + y[j].length;
    const int64_t end = std::min({x_end, y_end, y_length});
    if (end > at) {
      visit(at, end - at, x[i].content.At(times(at - x_begin, x_length, y_length)),
            y[j].content.At(at - y_begin));
      at = end;
    }
    if (x_end <= at) ++i;
    if (y_end <= at) ++j;
  }
}

}  // namespace shardproof
