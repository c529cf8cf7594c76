#include "conformance/fabric/nccl/fake_cuda_for_test.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

namespace shardproof::fake {
namespace {

struct Entry {
  std::function<bool()> may_run;  // empty: always
  std::function<void()> run;
};
struct Stream {
  std::deque<Entry> entries;
  uint64_t issued = 0, completed = 0;
};
// A place in a stream; no stream: nothing was recorded.
struct Mark {
  const Stream* stream = nullptr;
  uint64_t position = 0;
  bool done() const { return stream == nullptr || stream->completed >= position; }
};
struct Event {
  Mark mark;
  bool timing = false;
};
struct Block {
  std::byte* data;
  uint64_t bytes;
  bool live;
  cudaStream_t freed_on = nullptr;
  Mark freed;
};

// Streams outlive their handles: what is in them still runs.
struct Machine {
  ~Machine() {
    for (const Block& block : blocks) std::free(block.data);
  }
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Block> blocks;
  std::vector<std::pair<const std::byte*, uint64_t>> pinned;
  size_t turn = 0;
  cudaError_t last = cudaSuccess;
};
Machine& TheMachine() {
  static Machine machine;  // the C interface has no object to hold it
  return machine;
}

Stream& At(cudaStream_t stream) { return *reinterpret_cast<Stream*>(stream); }
Event& At(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

void PushEntry(Stream& stream, Entry entry) {
  ++stream.issued;
  stream.entries.push_back(std::move(entry));
}

// One entry of one stream; false: there is none that may run.
bool RunOne() {
  Machine& machine = TheMachine();
  for (size_t tries = 0; tries < machine.streams.size(); ++tries) {
    Stream& stream = *machine.streams[++machine.turn % machine.streams.size()];
    if (stream.entries.empty()) continue;
    Entry& entry = stream.entries.front();
    if (entry.may_run && !entry.may_run()) continue;
    if (entry.run) entry.run();
    stream.entries.pop_front();
    ++stream.completed;
    return true;
  }
  return false;
}

// At each look some: tests are to end.
void Progress() {
  for (int entries = 0; entries < 10 && RunOne(); ++entries) {
  }
}

cudaError_t Fail(cudaError_t error) { return TheMachine().last = error; }

bool IsPinned(const void* memory, uint64_t bytes) {
  const auto* begin = static_cast<const std::byte*>(memory);
  for (const auto& [data, size] : TheMachine().pinned) {
    if (begin >= data && begin + bytes <= data + size) return true;
  }
  return false;
}
bool IsDevice(const void* memory, uint64_t bytes) {
  const auto* begin = static_cast<const std::byte*>(memory);
  for (const Block& block : TheMachine().blocks) {
    if (block.live && begin >= block.data && begin + bytes <= block.data + block.bytes) return true;
  }
  return false;
}

}  // namespace

void Push(cudaStream_t stream, std::function<void()> work) {
  PushEntry(At(stream), {nullptr, std::move(work)});
}

void PushJoined(const std::vector<cudaStream_t>& streams, std::function<void()> work) {
  struct Meeting {
    size_t wanted, here = 0;
    std::function<void()> work;
  };
  auto meeting = std::make_shared<Meeting>(Meeting{streams.size(), 0, std::move(work)});
  for (cudaStream_t stream : streams) {
    PushEntry(At(stream), {nullptr, [meeting] {
                             if (++meeting->here == meeting->wanted) meeting->work();
                           }});
    PushEntry(At(stream), {[meeting] { return meeting->here == meeting->wanted; }, nullptr});
  }
}

}  // namespace shardproof::fake

using namespace shardproof::fake;  // NOLINT: the functions below are C's

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : Fail(cudaErrorInvalidDevice);
}
cudaError_t cudaGetLastError() { return std::exchange(TheMachine().last, cudaSuccess); }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t) { return "what the fake says"; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "no GPU, but much like one");
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  if (flags != cudaStreamNonBlocking) return Fail(cudaErrorInvalidValue);
  TheMachine().streams.push_back(std::make_unique<Stream>());
  return *stream = reinterpret_cast<cudaStream_t>(TheMachine().streams.back().get()), cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Mark mark = At(event).mark;
  PushEntry(At(stream), {[mark] { return mark.done(); }, nullptr});
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  auto* made = new Event{{}, (flags & cudaEventDisableTiming) == 0};
  return *event = reinterpret_cast<cudaEvent_t>(made), cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &At(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  At(event).mark = {&At(stream), At(stream).issued};
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  Progress();
  return At(event).mark.done() ? cudaSuccess
                               : Fail(cudaErrorNotReady);  // the runtime keeps this one too
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  const Event &a = At(from), &b = At(to);
  if (!a.timing || !b.timing || a.mark.stream == nullptr || b.mark.stream == nullptr)
    return Fail(cudaErrorInvalidResourceHandle);
  if (!a.mark.done() || !b.mark.done()) return Fail(cudaErrorNotReady);
  return *ms = static_cast<float>(b.mark.position) - static_cast<float>(a.mark.position),
         cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  if (props->allocType != cudaMemAllocationTypePinned) return Fail(cudaErrorInvalidValue);
  return *pool = reinterpret_cast<cudaMemPool_t>(&TheMachine()), cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }

// Reuse as CudaGpu sets it: on the stream of the free at once, elsewhere when the free has run.
cudaError_t cudaMallocFromPoolAsync(void** memory, size_t bytes, cudaMemPool_t,
                                    cudaStream_t stream) {
  if (bytes == 0 || bytes > (uint64_t{1} << 40)) return Fail(cudaErrorMemoryAllocation);
  for (Block& block : TheMachine().blocks) {
    if (block.live || block.bytes != bytes || (block.freed_on != stream && !block.freed.done()))
      continue;
    block.live = true;
    return *memory = block.data, cudaSuccess;
  }
  auto* data = static_cast<std::byte*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  if (bytes < (1 << 26)) std::memset(data, 0xA5, bytes);
  TheMachine().blocks.push_back({data, bytes, true, nullptr, {}});
  return *memory = data, cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  for (Block& block : TheMachine().blocks) {
    if (block.data != memory || !block.live) continue;
    block.live = false;
    block.freed_on = stream;
    block.freed = {&At(stream), At(stream).issued};
    return cudaSuccess;
  }
  return Fail(cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  TheMachine().pinned.push_back({static_cast<std::byte*>(*memory), bytes});
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  std::erase_if(TheMachine().pinned, [memory](const auto& range) { return range.first == memory; });
  std::free(memory);
  return cudaSuccess;
}

// Pageable memory is refused: the copy could wait for the stream.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool to_device = IsDevice(to, bytes), from_device = IsDevice(from, bytes);
  if (!to_device && !IsPinned(to, bytes)) return Fail(cudaErrorInvalidValue);
  if (!from_device && !IsPinned(from, bytes)) return Fail(cudaErrorInvalidValue);
  if (kind == cudaMemcpyHostToDevice && !to_device) return Fail(cudaErrorInvalidMemcpyDirection);
  if (kind == cudaMemcpyDeviceToHost && !from_device) return Fail(cudaErrorInvalidMemcpyDirection);
  Push(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
// What only keeps a stream busy is not done.
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t stream) {
  if (!IsDevice(to, bytes)) return Fail(cudaErrorInvalidValue);
  Push(stream, [=] {
    if (bytes < (1 << 26)) std::memset(to, byte, bytes);
  });
  return cudaSuccess;
}

}  // extern "C"
