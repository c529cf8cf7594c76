// dry_executor.h: what does device work do where no bytes are kept?
//
// The host of an engine reads few numbers: how many rows an exchange brings, norms and flags. Rows
// come from a rule: a rank's tokens choose all experts equally often, the first ones once more
// where that does not divide. Kernels that the engine brings are called, and named kernels and
// copies run if they touch few bytes. Everything else does nothing: a norm is that of zeros.
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/host/cpu_executor.h"

namespace shardproof {

class DryExecutor final : public CpuExecutor {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{1} << 14;  // that an operation may touch

  void Compute(int32_t stream, const Model& model, const NodeArgs& args, ModelRank rank) override;
  void Launch(int32_t stream, int32_t kernel, const std::vector<SpanData>& spans,
              const std::vector<double>& scalars) override;
  void Fill(int32_t stream, std::byte* to, int byte, uint64_t bytes) override;
  void Copy(int32_t stream, std::byte* to, const std::byte* from, uint64_t bytes) override;
  void Write(int32_t stream, std::byte* to, const void* from, uint64_t bytes) override;
};

// Rows of each expert of a rank whose tokens choose all experts equally often.
std::vector<int64_t> EvenRows(int64_t tokens, int64_t top_k, int64_t experts, int64_t capacity);

}  // namespace shardproof
