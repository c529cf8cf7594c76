// Autocast: the operators that CUDA runs in a lower precision or in float32, from torch's own
// lists.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace shardproof::device {
namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define SHARDPROOF_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define SHARDPROOF_FLOAT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_LOWER_PRECISION_FP(SHARDPROOF_LOWER)
  AT_FORALL_FP32(SHARDPROOF_FLOAT)
#undef SHARDPROOF_LOWER
#undef SHARDPROOF_FLOAT
}

}  // namespace
}  // namespace shardproof::device
