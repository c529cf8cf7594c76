#include "conformance/checks/base/content_math.h"

#include <algorithm>

namespace shardproof {

using Kind = Content::Kind;

namespace {

bool SameElements(const Content& a, const Content& b) {
  return a.instance == b.instance && a.param == b.param && a.element == b.element;
}

}  // namespace

Content Plain(Kind kind) {
  Content content;
  content.kind = kind;
  return content;
}

std::vector<Chunk> Updated(int32_t call, const std::vector<Chunk>& before) {
  std::vector<Chunk> after = before;
  for (Chunk& chunk : after) {
    if (chunk.content.kind == Kind::kParam) {
      chunk.content.tag = call;
    } else if (chunk.content.kind != Kind::kFill && chunk.content.kind != Kind::kPoison) {
      chunk.content = Plain(Kind::kOther);
    }
  }
  return after;
}

Content AddOnto(int32_t call, const Content& from, const Content& onto, ContributionSets& sets) {
  if (onto.kind == Kind::kPoison) return Plain(Kind::kPoison);
  if (onto.kind == Kind::kFill) return from;
  // A gradient of zeros is an update too, and with weight decay it is the parameter itself. So is
  // one that was never written: the values are wrong, but they are the parameter's.
  if (onto.kind == Kind::kParam && (from.kind != Kind::kParam || SameElements(from, onto))) {
    Content updated = onto;
    updated.tag = call;
    return updated;
  }
  if (from.kind == Kind::kPoison) return from;
  if (from.kind == Kind::kFill) return onto;
  if (onto.kind == Kind::kGrad && from.kind == Kind::kGrad) return SumOf(from, onto, sets);
  if (onto.kind == Kind::kGrad && from.kind == Kind::kParam) return onto;  // weight decay
  return Plain(Kind::kOther);
}

Content SumOf(const Content& a, const Content& b, ContributionSets& sets) {
  if (a.kind == Kind::kPoison || b.kind == Kind::kPoison) return Plain(Kind::kPoison);
  if (a.kind == Kind::kFill) return b;
  if (b.kind == Kind::kFill) return a;
  if (a.kind != b.kind) return Plain(Kind::kMixed);
  if (a.kind == Kind::kOther) return a;
  if (a.kind != Kind::kGrad || !SameElements(a, b)) return Plain(Kind::kMixed);
  Content sum = b;
  sum.tag = sets.Union(a.tag, b.tag);
  return sum;
}

std::vector<Chunk> Part(const std::vector<Chunk>& chunks, int64_t offset, int64_t length,
                        int64_t to) {
  std::vector<Chunk> cut;
  for (const Chunk& chunk : chunks) {
    const int64_t begin = std::max(chunk.offset, offset),
                  end = std::min(chunk.offset + chunk.length, offset + length);
    if (begin >= end) continue;
    cut.push_back({begin - offset + to, end - begin, chunk.content.At(begin - chunk.offset)});
  }
  return cut;
}

void Append(std::vector<Chunk>& to, const std::vector<Chunk>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::vector<Chunk> SumChunks(const std::vector<std::vector<Chunk>>& sent, int64_t offset,
                             int64_t length, ContributionSets& sets) {
  std::vector<Chunk> sum = Part(sent[0], offset, length, 0);
  for (size_t m = 1; m < sent.size(); ++m) {
    std::vector<Chunk> next;
    ZipChunks(Part(sent[m], offset, length, 0), length, sum, length,
              [&](int64_t at, int64_t bytes, const Content& a, const Content& b) {
                next.push_back({at, bytes, SumOf(a, b, sets)});
              });
    sum = std::move(next);
  }
  return sum;
}

}  // namespace shardproof
