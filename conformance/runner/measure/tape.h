// tape.h: which device work did an engine issue in a step, so that the same kernels can run without
// the engine?
//
// The tape is of what an Executor was asked for, with the addresses that it was given. In the order
// of issue, on one stream, it is a legal order of the step: whatever waits for work was issued
// after it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/fabric/forwarding_fabric.h"
#include "conformance/host/executor.h"

namespace shardproof {

// Passes everything on, and writes it down while it records. What only serves the record of a run
// (Digest, Values, Done) is passed on alone.
class TapeExecutor : public Executor {
 public:
  explicit TapeExecutor(std::shared_ptr<Executor> inner) : inner_(std::move(inner)) {}
  void Record(bool on) { recording_ = on; }
  // Issues what was written down into one stream. REQUIRES: its memory has not been freed
  // (KeepingFabric), and its models are there.
  void Play(int32_t stream);
  size_t length() const { return tape_.size(); }

  void Compute(int32_t stream, const Model& model, const NodeArgs& args, ModelRank rank) override;
  void Write(int32_t stream, std::byte* to, const void* from, uint64_t bytes) override;
  void Launch(int32_t stream, int32_t kernel, const std::vector<SpanData>& spans,
              const std::vector<double>& scalars) override;
  void Custom(int32_t stream, const CustomKernel& kernel) override;
  void Fill(int32_t stream, std::byte* to, int byte, uint64_t bytes) override;
  void Copy(int32_t stream, std::byte* to, const std::byte* from, uint64_t bytes) override;
  void Digest(int32_t stream, const std::byte* data, int32_t dtype, int64_t first_index,
              int64_t count, uint64_t* sum) override {
    inner_->Digest(stream, data, dtype, first_index, count, sum);
  }
  void Values(int32_t stream, const std::byte* data, int32_t dtype, int64_t count,
              std::vector<double>* values) override {
    inner_->Values(stream, data, dtype, count, values);
  }
  void Done(int32_t stream, bool* done) override { inner_->Done(stream, done); }
  void Collect() override { inner_->Collect(); }

 private:
  using Entry = std::function<void(Executor& executor, int32_t stream)>;
  void Add(int32_t stream, Entry entry);
  std::shared_ptr<Executor> inner_;
  bool recording_ = false;
  std::vector<Entry> tape_;
};

// Passes everything on, but frees nothing while it keeps: the end of the fabric beneath gives it
// back.
class KeepingFabric : public ForwardingFabric {
 public:
  using ForwardingFabric::ForwardingFabric;
  void Keep(bool on) { keeping_ = on; }
  void Free(int32_t stream, const Block& block) override {
    if (!keeping_) ForwardingFabric::Free(stream, block);
  }

 private:
  bool keeping_ = false;
};

}  // namespace shardproof
