#include "device.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Storage.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <cstring>

#include "generator.h"
#include "memory.h"
#include "recorder.h"
#include "streams.h"
#include "transfers.h"

namespace shardproof::device {
namespace {

thread_local c10::DeviceIndex t_device = 0;
c10::DeviceIndex g_count = 1;

c10::Stream Handle(int64_t stream, c10::DeviceIndex index) {
  return c10::Stream(c10::Stream::UNSAFE, {kDeviceType, index}, stream);
}

c10::DeviceIndex IndexOf(c10::Device device) {
  return device.has_index() ? device.index() : t_device;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDeviceType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {kDeviceType, ExchangeDevice(device.index())};
  }
  c10::Device getDevice() const override { return CurrentDevice(); }
  void setDevice(c10::Device device) const override { ExchangeDevice(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) t_device = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return g_count; }

  c10::Stream getStream(c10::Device device) const override {
    return Handle(CurrentStream(), IndexOf(device));
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return Handle(kDefaultStream, IndexOf(device));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high) const override {
    return Handle(NewStream("pool", high ? -1 : 0), IndexOf(device));
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return Handle(NewStream("stream", priority), IndexOf(device));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return Handle(ExchangeStream(stream.id()), stream.device_index());
  }
  bool queryStream(const c10::Stream& stream) const override { return QueryStream(stream.id()); }
  void synchronizeStream(const c10::Stream& stream) const override { SyncStream(stream.id()); }
  void synchronizeDevice(const c10::DeviceIndex) const override { SyncDevice(); }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr) *event = NewEvent();
    RecordEvent(static_cast<Event*>(*event), stream.id());
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) WaitEvent(*static_cast<Event*>(event), stream.id());
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || QueryEvent(*static_cast<Event*>(event));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) SyncEvent(*static_cast<Event*>(event));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event != nullptr && !TheRecorder().abandoned()) DropEvent(static_cast<Event*>(event));
  }
  // Times of events mean nothing here: each pair is 0 ms apart.
  double elapsedTime(void*, void*, const c10::DeviceIndex) const override { return 0; }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    UseOnStream(data.get(), stream.id());
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return index == t_device; }
  c10::DeviceIndex deviceCount() const override { return g_count; }
  void setCurrentDevice(c10::DeviceIndex index) const override { ExchangeDevice(index); }
  c10::DeviceIndex getCurrentDevice() const override { return t_device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return ExchangeDevice(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return ExchangeDevice(index);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return DefaultGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return NewGenerator(index);
  }
  bool isPinnedPtr(const void* address) const override {
    Hold hold;
    const Block* block = FindBlock(address);
    return block != nullptr && block->pinned;
  }
  at::Allocator* getPinnedMemoryAllocator() const override { return &PinnedAllocator(); }
  c10::Device getDeviceFromPtr(void*) const override { return CurrentDevice(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    c10::DataPtr fresh = DeviceAllocator().allocate(bytes);
    const size_t keep = std::min(bytes, storage.nbytes());
    if (keep > 0) {
      WaitForTransfers(storage.data());
      std::memcpy(fresh.get(), storage.data(), keep);
      RecordCopy(storage.data(), fresh.get(), keep);
    }
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(fresh));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }

 private:
  static void RecordCopy(const void* from, const void* to, size_t bytes) {
    Hold hold;
    const Block* source = FindBlock(from);
    const Block* target = FindBlock(to);
    if (source == nullptr || target == nullptr) return;
    const std::string length = std::to_string(bytes);
    TheRecorder().Write(Row("copy")
                            .Number("s", CurrentStream())
                            .List("r", "[" + std::to_string(source->id) + ",1,0," + length + "],[" +
                                           std::to_string(target->id) + ",2,0," + length + "]"));
  }
};

}  // namespace

c10::Device CurrentDevice() { return {kDeviceType, t_device}; }

c10::DeviceIndex ExchangeDevice(c10::DeviceIndex index) {
  const c10::DeviceIndex before = t_device;
  if (index < 0) return before;  // "the current one"
  TORCH_CHECK(index < g_count, "shardproof: device ", static_cast<int>(index), " of ",
              static_cast<int>(g_count));
  t_device = index;
  return before;
}

c10::DeviceIndex DeviceCount() { return g_count; }
void SetDeviceCount(int count) { g_count = static_cast<c10::DeviceIndex>(count); }

void RegisterHooks() { at::RegisterPrivateUse1HooksInterface(new Hooks); }

}  // namespace shardproof::device
