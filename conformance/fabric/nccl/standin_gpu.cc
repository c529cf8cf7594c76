#include "conformance/fabric/nccl/standin_gpu.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/cuda/immediate_queue.h"

namespace shardproof {

// A stream of the simulator, and a shadow beside it on which the completion of records is written
// down, so that asking for them changes nothing in the stream's own order.
class StandinGpu::SimQueue : public Queue {
 public:
  SimQueue(StandinGpu& gpu, std::string_view name, int priority)
      : gpu_(gpu),
        stream_(gpu.sim_.CreateStream(name, priority)),
        shadow_(gpu.sim_.CreateStream(std::string(name) + " (marks)", priority)) {}
  int32_t stream() const { return stream_; }
  int64_t NextRecord() { return ++records_; }
  const std::shared_ptr<int64_t>& done() const { return done_; }
  int32_t shadow() const { return shadow_; }

  void* native() const override { return nullptr; }
  void Run(std::function<void()> body) override {
    gpu_.sim_.Enqueue(stream_, "kernel", std::move(body));
  }
  void CheckLaunch(const char*) override {}
  std::byte* Take(uint64_t bytes) override { return gpu_.TakeBlock(stream_, bytes).data; }
  void Return(std::byte* memory) override { gpu_.ReturnBlock(stream_, memory); }
  void Fill(std::byte* to, int byte, uint64_t bytes) override {
    Run([=] { std::memset(to, byte, bytes); });
  }
  void Copy(std::byte* to, const std::byte* from, uint64_t bytes) override {
    Run([=] { std::memcpy(to, from, bytes); });
  }
  void Upload(std::byte* to, const void* from, uint64_t bytes) override {
    const auto* first = static_cast<const std::byte*>(from);
    Run([to, copy = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(to, copy.data(), copy.size());
    });
  }
  void Download(void* to, const std::byte* from, uint64_t bytes) override {
    Run([=] { std::memcpy(to, from, bytes); });
  }
  void Multiply(const Gemm& gemm) override {
    Run([gemm] { MultiplyOnHost(gemm); });
  }

 private:
  StandinGpu& gpu_;
  int32_t stream_, shadow_;
  int64_t records_ = 0;
  std::shared_ptr<int64_t> done_ =
      std::make_shared<int64_t>(0);  // number of the latest completed record
};

StandinGpu::StandinGpu(Fabric& sim, StandinClock& clock, StandinIds& ids)
    : sim_(sim), clock_(clock), ids_(ids) {}
StandinGpu::~StandinGpu() = default;

void StandinGpu::Need(bool holds, const char* call, const std::string& status) const {
  if (!holds) throw GpuError(call, status);
}

// Nothing can complete any more, so that only time passes. Every question gets a second.
bool StandinGpu::PassTime(const GiveUp& give_up) {
  for (int second = 0; second < 1'000'000; ++second) {
    if (give_up && give_up()) return true;
    clock_.now_us += 1'000'000;
  }
  throw GpuError("stand-in", "the simulator has ended, and who waits does not give up");
}

GpuVersions StandinGpu::Versions() const { return {"stand-in (simulator)", 0, 0, 0}; }

int32_t StandinGpu::CreateStream(std::string_view name, int priority) {
  streams_.push_back(std::make_unique<SimQueue>(*this, name, priority));
  ++live_.streams;
  return static_cast<int32_t>(streams_.size()) - 1;
}

StandinGpu::SimQueue& StandinGpu::StreamOf(int32_t stream, const char* call) const {
  Need(stream >= 0 && static_cast<size_t>(stream) < streams_.size() && At(streams_, stream), call,
       "no stream has this id");
  return *At(streams_, stream);
}

int32_t StandinGpu::SimStreamOf(int32_t stream, const char* call) const {
  return StreamOf(stream, call).stream();
}

void StandinGpu::DestroyStream(int32_t stream) {
  const SimQueue& queue = StreamOf(stream, "cudaStreamDestroy");
  sim_.DestroyStream(queue.stream());
  sim_.DestroyStream(queue.shadow());
  At(streams_, stream) = nullptr;
  --live_.streams;
}

Queue& StandinGpu::QueueOf(int32_t stream) { return StreamOf(stream, "QueueOf"); }

int32_t StandinGpu::CreateEvent(bool timing) {
  events_.push_back({sim_.CreateEvent(), timing, nullptr});
  ++live_.events;
  return static_cast<int32_t>(events_.size()) - 1;
}

StandinGpu::Event& StandinGpu::EventOf(int32_t event, const char* call) {
  Need(event >= 0 && static_cast<size_t>(event) < events_.size() && At(events_, event).sim >= 0,
       call, "no event has this id");
  return At(events_, event);
}

void StandinGpu::DestroyEvent(int32_t event) {
  sim_.DestroyEvent(std::exchange(EventOf(event, "cudaEventDestroy").sim, -1));
  --live_.events;
}

void StandinGpu::Record(int32_t event, int32_t stream) {
  Event& recorded = EventOf(event, "cudaEventRecord");
  SimQueue& queue = StreamOf(stream, "cudaEventRecord");
  const auto record = recorded.record = std::make_shared<Completion>();
  record->stream_done = queue.done();
  record->number = queue.NextRecord();
  const int32_t sim_event = recorded.sim;
  if (recorded.timing)
    sim_.Enqueue(queue.stream(), "time", [record, time = time_] { record->time = ++*time; });
  sim_.Record(sim_event, queue.stream());
  sim_.Wait(sim_event, queue.shadow());
  sim_.Enqueue(queue.shadow(), "mark", [record] { Complete(record.get()); });
}

void StandinGpu::Complete(Completion* record) {
  *record->stream_done = std::max(*record->stream_done, record->number);
}

void StandinGpu::Wait(int32_t event, int32_t stream) {
  sim_.Wait(EventOf(event, "cudaStreamWaitEvent").sim,
            StreamOf(stream, "cudaStreamWaitEvent").stream());
}

bool StandinGpu::Done(int32_t event) {
  const auto& record = EventOf(event, "cudaEventQuery").record;
  return record == nullptr || *record->stream_done >= record->number;
}

bool StandinGpu::Await(int32_t event, const GiveUp& give_up) {
  if (Done(event)) return true;
  if (give_up && give_up()) return false;
  const auto record = EventOf(event, "cudaEventQuery").record;
  if (sim_.SyncEvent(EventOf(event, "cudaEventQuery").sim, nullptr) != SPF_OK)
    return Done(event) || !PassTime(give_up);
  Complete(record.get());  // its mark in the shadow may be late
  return true;
}

double StandinGpu::ElapsedMs(int32_t from, int32_t to) {
  const Event &begin = EventOf(from, "cudaEventElapsedTime"),
              &end = EventOf(to, "cudaEventElapsedTime");
  Need(begin.timing && end.timing, "cudaEventElapsedTime",
       "cudaErrorInvalidResourceHandle: not a timing event");
  Need(begin.record && end.record && Done(from) && Done(to), "cudaEventElapsedTime",
       "cudaErrorNotReady");
  return static_cast<double>(end.record->time - begin.record->time);
}

GpuMemory StandinGpu::TakeBlock(int32_t sim_stream, uint64_t bytes) {
  const Block block = sim_.Alloc(sim_stream, bytes, false);
  Need(block.id >= 0, "cudaMallocFromPoolAsync", "cudaErrorMemoryAllocation");
  blocks_[block.host] = block;
  ++live_.blocks;
  sim_.Enqueue(sim_stream, "undefined", [block] { std::memset(block.host, 0x5A, block.bytes); });
  return {block.host, block.address};
}

void StandinGpu::ReturnBlock(int32_t sim_stream, std::byte* data) {
  const auto found = blocks_.find(data);
  Need(found != blocks_.end(), "cudaFreeAsync",
       "cudaErrorInvalidValue: nothing was allocated there");
  sim_.Free(sim_stream, found->second);
  blocks_.erase(found);
  --live_.blocks;
}

GpuMemory StandinGpu::Alloc(int32_t stream, uint64_t bytes) {
  Need(bytes > 0, "cudaMallocFromPoolAsync", "cudaErrorInvalidValue");
  return TakeBlock(StreamOf(stream, "cudaMallocFromPoolAsync").stream(), bytes);
}

void StandinGpu::Free(int32_t stream, std::byte* data) {
  ReturnBlock(StreamOf(stream, "cudaFreeAsync").stream(), data);
}

std::byte* StandinGpu::AllocPinned(uint64_t bytes) {
  host_memory_.push_back(std::make_unique<std::byte[]>(bytes));
  return host_memory_.back().get();
}

GpuMemory StandinGpu::AllocRegistrable(uint64_t bytes) {
  std::byte* data = AllocPinned(bytes);
  registrable_[data] = bytes;
  return {data, reinterpret_cast<uint64_t>(data)};
}

}  // namespace shardproof
