// How does a trace write a tensor's elements? As FORMAT.md says it of `v`: the shortest decimal
// that reads back as the same double.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace shardproof::device {

// "[0.5,-3,\"nan\"]" of the elements of a tensor of the CPU: real numbers or bool.
std::string ValuesText(const at::Tensor& tensor);

}  // namespace shardproof::device
