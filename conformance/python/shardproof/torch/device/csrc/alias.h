// The bytes of a tensor of the device, as a tensor of the CPU: the same memory, no copy.
#pragma once

#include <ATen/core/Tensor.h>

namespace shardproof::device {

// Waits for what is still in flight to these bytes. The alias keeps nothing alive.
at::Tensor HostAlias(const at::Tensor& tensor);
// For who brings what is in flight: does not wait.
at::Tensor RawHostAlias(const at::Tensor& tensor);

}  // namespace shardproof::device
