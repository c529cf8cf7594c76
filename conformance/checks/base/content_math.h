// content_math.h: what do bytes mean after they were added, cut or updated?
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/checks/base/contents.h"

namespace shardproof {

Content Plain(Content::Kind kind);

// a + b, as a reduction adds them. Constants count as zero; poison spreads; what does not belong
// together is kMixed.
Content SumOf(const Content& a, const Content& b, ContributionSets& sets);
// onto + from, as AXPBY with ADD in this entry call: a gradient onto a parameter is an update of
// it.
Content AddOnto(int32_t call, const Content& from, const Content& onto, ContributionSets& sets);
// Parameter elements become the version of this entry call; other content is no longer known.
std::vector<Chunk> Updated(int32_t call, const std::vector<Chunk>& before);

// [offset, offset + length) of chunks, placed at to.
std::vector<Chunk> Part(const std::vector<Chunk>& chunks, int64_t offset, int64_t length,
                        int64_t to);
void Append(std::vector<Chunk>& to, const std::vector<Chunk>& from);
// The sum over all members of [offset, offset + length) of what each sent.
std::vector<Chunk> SumChunks(const std::vector<std::vector<Chunk>>& sent, int64_t offset,
                             int64_t length, ContributionSets& sets);

}  // namespace shardproof
