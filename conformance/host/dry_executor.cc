#include "conformance/host/dry_executor.h"

#include <algorithm>
#include <cstring>

#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/model/network.h"

namespace shardproof {
namespace {

void Put(const NodeArgs& args, int32_t value, const std::vector<int64_t>& counts) {
  if (value < 0 || args.act[value] == nullptr || counts.empty()) return;
  std::memcpy(args.act[value], counts.data(), counts.size() * sizeof(int64_t));
}

// How many rows go to each expert and to each rank.
void Route(const ModelConfig& config, const NodeSpec& spec, const NodeArgs& args) {
  const MoeSizes sizes = MoeSizesOf(config);
  const std::vector<int64_t> of_experts =
      EvenRows(sizes.tokens, sizes.top_k, sizes.experts, sizes.capacity);
  std::vector<int64_t> of_ranks(static_cast<size_t>(sizes.experts / sizes.local), 0);
  for (size_t i = 0; i < of_experts.size(); ++i)
    of_ranks[i / static_cast<size_t>(sizes.local)] += of_experts[i];
  Put(args, spec.out[2], of_experts);
  Put(args, spec.out[3], of_ranks);
}

}  // namespace

std::vector<int64_t> EvenRows(int64_t tokens, int64_t top_k, int64_t experts, int64_t capacity) {
  const int64_t rows = tokens * top_k;
  std::vector<int64_t> counts;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const int64_t even = rows / experts + (expert < rows % experts ? 1 : 0);
    counts.push_back(capacity > 0 ? std::min(even, capacity) : even);
  }
  return counts;
}

void DryExecutor::Compute(int32_t stream, const Model& model, const NodeArgs& args,
                          ModelRank rank) {
  if (args.phase != SPF_FWD) return;
  const Network& network = model.Graph(rank);
  const NodeSpec& spec = network.spec(args.node);
  if (spec.op == Op::kRouter) Route(model.config(), spec, args);
  if (spec.op == Op::kSplits) CpuExecutor::Compute(stream, model, args, rank);  // sums of counts
}

void DryExecutor::Launch(int32_t stream, int32_t kernel, const std::vector<SpanData>& spans,
                         const std::vector<double>& scalars) {
  uint64_t bytes = 0;
  for (const SpanData& span : spans) bytes += span.count * DtypeBytes(span.dtype);
  if (bytes <= kMostBytes) CpuExecutor::Launch(stream, kernel, spans, scalars);
}

void DryExecutor::Fill(int32_t stream, std::byte* to, int byte, uint64_t bytes) {
  if (bytes <= kMostBytes) CpuExecutor::Fill(stream, to, byte, bytes);
}

void DryExecutor::Copy(int32_t stream, std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes <= kMostBytes) CpuExecutor::Copy(stream, to, from, bytes);
}

void DryExecutor::Write(int32_t stream, std::byte* to, const void* from, uint64_t bytes) {
  if (bytes <= kMostBytes) CpuExecutor::Write(stream, to, from, bytes);
}

}  // namespace shardproof
