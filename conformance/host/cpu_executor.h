// cpu_executor.h: what does device work do where the device is the CPU? Everything at once, on host
// memory.
#pragma once
#include "conformance/host/executor.h"

namespace shardproof {

// Runs fn on copies of the declared ranges: bytes that were not declared are not there.
void RunOnCopies(const CustomKernel& kernel);

// Has no state.
class CpuExecutor : public Executor {
 public:
  void Compute(int32_t stream, const Model& model, const NodeArgs& args, ModelRank rank) override;
  void Launch(int32_t stream, int32_t kernel, const std::vector<SpanData>& spans,
              const std::vector<double>& scalars) override;
  void Custom(int32_t stream, const CustomKernel& kernel) override;
  void Fill(int32_t stream, std::byte* to, int byte, uint64_t bytes) override;
  void Copy(int32_t stream, std::byte* to, const std::byte* from, uint64_t bytes) override;
  void Write(int32_t stream, std::byte* to, const void* from, uint64_t bytes) override;
  void Digest(int32_t stream, const std::byte* data, int32_t dtype, int64_t first_index,
              int64_t count, uint64_t* sum) override;
  void Values(int32_t stream, const std::byte* data, int32_t dtype, int64_t count,
              std::vector<double>* values) override;
  void Done(int32_t stream, bool* done) override;
  void Collect() override {}
};

}  // namespace shardproof
