// Random numbers of the device: a seed and an offset, as CUDA's generator has, so that what reads
// or sets its state (DTensor's trackers, activation checkpointing) finds 16 bytes: seed, offset.
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

namespace shardproof::device {

const at::Generator& DefaultGenerator();
at::Generator NewGenerator(c10::DeviceIndex index);

// While one of these lives the CPU's default generator gives the numbers of a device's generator.
// Its own state comes back after: numbers drawn on the device never move those of the host, as on a
// GPU.
class DrawOnDevice {
 public:
  explicit DrawOnDevice(const at::Generator& generator);
  ~DrawOnDevice();
  DrawOnDevice(const DrawOnDevice&) = delete;
  DrawOnDevice& operator=(const DrawOnDevice&) = delete;

 private:
  c10::intrusive_ptr<c10::TensorImpl> host_state_;
};

}  // namespace shardproof::device
