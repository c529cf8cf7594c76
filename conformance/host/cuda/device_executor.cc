#include "conformance/host/cuda/device_executor.h"

#include <cstddef>
#include <utility>

#include "conformance/common/dtype.h"
#include "conformance/host/cpu_executor.h"
#include "conformance/host/host.h"
#include "conformance/model/cuda/launch.h"
#include "conformance/model/cuda/node.h"
#include "conformance/trace/cuda/digest.h"
#include "conformance/trace/digest.h"

namespace shardproof {

DeviceExecutor::DeviceExecutor(std::function<Queue&(int32_t)> queue_of)
    : queue_of_(std::move(queue_of)) {}

void DeviceExecutor::Compute(int32_t stream, const Model& model, const NodeArgs& args,
                             ModelRank rank) {
  RunNode(queue_of_(stream), model, args, rank);
}

void DeviceExecutor::Launch(int32_t stream, int32_t kernel, const std::vector<SpanData>& spans,
                            const std::vector<double>& scalars) {
  RunLaunchOnDevice(queue_of_(stream), kernel, spans, scalars);
}

void DeviceExecutor::Custom(int32_t stream, const CustomKernel& kernel) {
  Queue& queue = queue_of_(stream);
  if (queue.native() == nullptr) return queue.Run([kernel] { RunOnCopies(kernel); });
  std::vector<void*> data;
  for (const SpanData& span : kernel.spans) data.push_back(span.data);
  kernel.Call(queue.native(), data.data());
  queue.CheckLaunch("CUSTOM");
}

void DeviceExecutor::Fill(int32_t stream, std::byte* to, int byte, uint64_t bytes) {
  queue_of_(stream).Fill(to, byte, bytes);
}
void DeviceExecutor::Copy(int32_t stream, std::byte* to, const std::byte* from, uint64_t bytes) {
  queue_of_(stream).Copy(to, from, bytes);
}
void DeviceExecutor::Write(int32_t stream, std::byte* to, const void* from, uint64_t bytes) {
  queue_of_(stream).Upload(to, from, bytes);
}

// Both words begin with all bits one, which is one operation: the flag is set then, and the sum is
// 1 too small.
DeviceExecutor::Open& DeviceExecutor::OpenOn(int32_t stream) {
  const auto [at, added] = open_.try_emplace(stream);
  if (!added) return at->second;
  Queue& queue = queue_of_(stream);
  at->second.delivery = &deliveries_.emplace_back();
  at->second.words = queue.Take(sizeof(Delivery::Words));
  queue.Fill(at->second.words, 0xFF, sizeof(Delivery::Words));
  return at->second;
}

void DeviceExecutor::Close(int32_t stream) {
  const Open open = open_.extract(stream).mapped();
  Queue& queue = queue_of_(stream);
  queue.Download(&open.delivery->words, open.words, sizeof(Delivery::Words));
  queue.Return(open.words);
}

void DeviceExecutor::Digest(int32_t stream, const std::byte* data, int32_t dtype,
                            int64_t first_index, int64_t count, uint64_t* sum) {
  const uint64_t* current = OpenOn(stream).delivery->sum;
  if (current != nullptr && current != sum) Close(stream);
  const Open& open = OpenOn(stream);
  open.delivery->sum = sum;
  static_assert(offsetof(Delivery::Words, sum) == 0);
  DigestOnDevice(queue_of_(stream), data, dtype, first_index, count,
                 reinterpret_cast<uint64_t*>(open.words));
}

void DeviceExecutor::Values(int32_t stream, const std::byte* data, int32_t dtype, int64_t count,
                            std::vector<double>* values) {
  Snapshot& snapshot = OpenOn(stream).delivery->snapshots.emplace_back();
  snapshot.bytes.resize(static_cast<size_t>(count) * DtypeBytes(dtype));
  snapshot.dtype = dtype;
  snapshot.count = count;
  snapshot.values = values;
  if (count > 0) queue_of_(stream).Download(snapshot.bytes.data(), data, snapshot.bytes.size());
}

void DeviceExecutor::Done(int32_t stream, bool* done) {
  OpenOn(stream).delivery->done = done;
  Close(stream);
}

void DeviceExecutor::Collect() {
  for (Delivery& delivery : deliveries_) {
    if (delivery.words.here == 0) continue;
    if (delivery.sum != nullptr) *delivery.sum += delivery.words.sum + 1;
    for (const Snapshot& snapshot : delivery.snapshots) {
      snapshot.values->resize(static_cast<size_t>(snapshot.count));
      for (int64_t i = 0; i < snapshot.count; ++i) {
        (*snapshot.values)[static_cast<size_t>(i)] =
            ValueAt(snapshot.bytes.data(), snapshot.dtype, i);
      }
    }
    if (delivery.done != nullptr) *delivery.done = true;
    delivery = {};
  }
}

}  // namespace shardproof
