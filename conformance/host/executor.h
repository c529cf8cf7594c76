// executor.h: who carries out the device work of one rank, and on what memory?
//
// The host front end decides what is to be done; an Executor does it, on the CPU (cpu_executor.h)
// or on a GPU. Its calls come from bodies that the fabric runs in the order of their stream, with
// the addresses of Block::host. What a call promises to write on the host side is there after
// Collect at the latest.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "conformance/model/launch_kernels.h"
#include "conformance/model/model.h"

namespace shardproof {

// A kernel that the engine brought (SPF_K_CUSTOM).
struct CustomKernel {
  void (*fn)(void* stream, void* const* data, const void* arg) = nullptr;
  std::vector<std::byte> arg;
  std::vector<SpanData> spans;
  // Holds the calling thread's id while fn runs: it may not call the host.
  std::shared_ptr<std::atomic<std::thread::id>> inside;

  // Calls fn. Throws EngineThrew for whatever it throws.
  void Call(void* stream, void* const* data) const;
};

// stream: id of the fabric's stream that runs the body. Streams of one rank only; calls come from
// one thread at a time.
class Executor {
 public:
  virtual ~Executor() = default;

  // args and its tables are read before the call returns.
  virtual void Compute(int32_t stream, const Model& model, const NodeArgs& args,
                       ModelRank rank) = 0;
  // A named kernel, validated (ValidateLaunch).
  virtual void Launch(int32_t stream, int32_t kernel, const std::vector<SpanData>& spans,
                      const std::vector<double>& scalars) = 0;
  virtual void Custom(int32_t stream, const CustomKernel& kernel) = 0;
  virtual void Fill(int32_t stream, std::byte* to, int byte, uint64_t bytes) = 0;
  virtual void Copy(int32_t stream, std::byte* to, const std::byte* from, uint64_t bytes) = 0;
  // from is host memory, read before the call returns.
  virtual void Write(int32_t stream, std::byte* to, const void* from, uint64_t bytes) = 0;

  // Adds the digest of count elements (trace/digest.h), the first with the given index, to *sum.
  virtual void Digest(int32_t stream, const std::byte* data, int32_t dtype, int64_t first_index,
                      int64_t count, uint64_t* sum) = 0;
  // *values = the elements as they are now, widened.
  virtual void Values(int32_t stream, const std::byte* data, int32_t dtype, int64_t count,
                      std::vector<double>* values) = 0;
  // *done = true if the stream has come here; stays as it is if it never does (an aborted run).
  virtual void Done(int32_t stream, bool* done) = 0;

  // Call once after the rank's device work has run, or can run no more. What was promised is in
  // place.
  virtual void Collect() = 0;
};

}  // namespace shardproof
