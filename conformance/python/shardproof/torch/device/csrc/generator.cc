#include "generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Utils.h>
#include <ATen/ops/empty.h>

#include <cstring>

#include "device.h"

namespace shardproof::device {
namespace {

constexpr uint64_t kDrawsOfAnOperation = 4;  // CUDA's offsets are multiples of 4 too

struct Generator final : c10::GeneratorImpl {
  explicit Generator(c10::DeviceIndex index)
      : GeneratorImpl({kDeviceType, index}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.numel() == sizeof(seed_) + sizeof(offset_) && state.itemsize() == 1,
                "shardproof: a generator's state has 16 bytes (seed, offset), not ", state.numel());
    const auto* bytes = static_cast<const char*>(state.data());
    std::memcpy(&seed_, bytes, sizeof(seed_));
    std::memcpy(&offset_, bytes + sizeof(seed_), sizeof(offset_));
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor state = at::empty({sizeof(seed_) + sizeof(offset_)}, at::kByte);
    auto* bytes = state.mutable_data_ptr<uint8_t>();
    std::memcpy(bytes, &seed_, sizeof(seed_));
    std::memcpy(bytes + sizeof(seed_), &offset_, sizeof(offset_));
    return state.getIntrusivePtr();
  }
  Generator* clone_impl() const override {
    auto* copy = new Generator(device_.index());
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }

 private:
  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t offset_ = 0;
};

uint64_t Mix(uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

const at::Generator& DefaultGenerator() {
  static auto* generator = new at::Generator(at::make_generator<Generator>(c10::DeviceIndex{0}));
  return *generator;
}

at::Generator NewGenerator(c10::DeviceIndex index) {
  return at::make_generator<Generator>(index < 0 ? c10::DeviceIndex{0} : index);
}

DrawOnDevice::DrawOnDevice(const at::Generator& generator) {
  auto host = at::detail::getDefaultCPUGenerator();
  at::Generator device = generator;
  std::scoped_lock lock(device.mutex(), host.mutex());
  host_state_ = host.get_state().getIntrusivePtr();
  host.set_current_seed(Mix(device.current_seed() ^ Mix(device.get_offset())));
  device.set_offset(device.get_offset() + kDrawsOfAnOperation);
}

DrawOnDevice::~DrawOnDevice() {
  auto host = at::detail::getDefaultCPUGenerator();
  std::scoped_lock lock(host.mutex());
  host.set_state(at::Tensor(host_state_));
}

}  // namespace shardproof::device
