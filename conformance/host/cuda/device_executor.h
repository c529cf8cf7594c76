// device_executor.h: how is a rank's device work carried out on a GPU?
//
// Everything goes into the queue of its stream, in the order of the calls. What the host is to
// learn is downloaded into memory that the executor owns, and put where the caller wants it by
// Collect.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "conformance/cuda/queue.h"
#include "conformance/host/executor.h"

namespace shardproof {

class DeviceExecutor : public Executor {
 public:
  // queue_of: by id of the fabric's stream; asked at every call. The executor must live until
  // nothing that is in a queue can run any more, also after an abort: queues write to its memory.
  explicit DeviceExecutor(std::function<Queue&(int32_t stream)> queue_of);

  void Compute(int32_t stream, const Model& model, const NodeArgs& args, ModelRank rank) override;
  void Launch(int32_t stream, int32_t kernel, const std::vector<SpanData>& spans,
              const std::vector<double>& scalars) override;
  // Where kernels are loops on the host: on copies, as CpuExecutor does. Else fn is called at once,
  // with the CUDA stream and the device pointers of the spans.
  void Custom(int32_t stream, const CustomKernel& kernel) override;
  void Fill(int32_t stream, std::byte* to, int byte, uint64_t bytes) override;
  void Copy(int32_t stream, std::byte* to, const std::byte* from, uint64_t bytes) override;
  void Write(int32_t stream, std::byte* to, const void* from, uint64_t bytes) override;

  // These reach the caller's places together with the next Done of their stream: none if the stream
  // did not come there.
  void Digest(int32_t stream, const std::byte* data, int32_t dtype, int64_t first_index,
              int64_t count, uint64_t* sum) override;
  void Values(int32_t stream, const std::byte* data, int32_t dtype, int64_t count,
              std::vector<double>* values) override;
  void Done(int32_t stream, bool* done) override;
  void Collect() override;

 private:
  struct Snapshot {
    std::vector<std::byte> bytes;  // downloaded
    int32_t dtype = 0;
    int64_t count = 0;
    std::vector<double>* values = nullptr;
  };
  // What one Done brings: two words from the device, and snapshots.
  struct Delivery {
    struct Words {
      uint64_t sum = 0;   // of digests, less 1
      uint64_t here = 0;  // 0: the stream has not come here
    } words;
    uint64_t* sum = nullptr;
    bool* done = nullptr;
    std::vector<Snapshot> snapshots;
  };
  // The words of a delivery on the device, from its first Digest, Values or Done to its Done.
  struct Open {
    Delivery* delivery = nullptr;
    std::byte* words = nullptr;
  };
  Open& OpenOn(int32_t stream);
  void Close(int32_t stream);

  std::function<Queue&(int32_t)> queue_of_;
  std::deque<Delivery> deliveries_;  // queues write to them: their places hold
  std::map<int32_t, Open> open_;     // by stream
};

}  // namespace shardproof
