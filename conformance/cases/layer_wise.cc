// illegal.h's rules about layer-wise engines.
#include "conformance/cases/illegal.h"

namespace shardproof {
namespace {

bool Uses(const InstanceSpec& spec) { return spec.strategy == "layer_wise"; }

// The first option that differs from its default, "layer_wise_buffer = grads"; empty: none.
std::string Option(const LayerWiseSpec& options) {
  const LayerWiseSpec usual;
  if (options.layout != usual.layout) return "layer_wise_layout = " + options.layout;
  if (options.transport != usual.transport) return "layer_wise_transport = " + options.transport;
  return options.buffer != usual.buffer ? "layer_wise_buffer = " + options.buffer : "";
}

std::string NeedsStrategy(const InstanceSpec& spec, int32_t) {
  const std::string option = Option(spec.layer_wise);
  if (Uses(spec) || option.empty()) return "";
  return option + " with strategy = " + spec.strategy + ": it needs layer_wise";
}

std::string LayoutWord(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec)) return "";
  return UnknownWord("layer_wise_layout", spec.layer_wise.layout, {"dealt", "aligned"});
}

std::string TransportWord(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec)) return "";
  return UnknownWord("layer_wise_transport", spec.layer_wise.transport,
                     {"all_gather_v", "broadcast", "padded"});
}

std::string BufferWord(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec)) return "";
  return UnknownWord("layer_wise_buffer", spec.layer_wise.buffer, {"own", "grads"});
}

// Owners are dealt over all data-parallel ranks, so gradients are summed over all of them.
std::string OneInstance(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || spec.outer <= 1) return "";
  return "num_optimizer_instances = " + std::to_string(spec.outer) +
         " with strategy = layer_wise: parameters have one owner among all data-parallel ranks";
}

std::string GatherNeedsReduce(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || !spec.overlap_param_gather || spec.overlap_grad_reduce) return "";
  return "overlap_param_gather = 1 with strategy = layer_wise and overlap_grad_reduce = 0: there "
         "are no buckets to gather one by one";
}

// Members of a group use registered blocks of one size at one offset.
std::string UserBuffers(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || !spec.nccl_ub) return "";
  return "nccl_ub = 1 with strategy = layer_wise: owners send pieces of their own sizes "
         "and places";
}

std::string AlignedTransport(const InstanceSpec& spec, int32_t) {
  const LayerWiseSpec& options = spec.layer_wise;
  if (!Uses(spec) || options.layout != "aligned" || options.transport == LayerWiseSpec{}.transport)
    return "";
  return "layer_wise_transport = " + options.transport +
         " with layer_wise_layout = aligned: equal shards are gathered in place";
}

std::string AlignedBuffer(const InstanceSpec& spec, int32_t) {
  const LayerWiseSpec& options = spec.layer_wise;
  if (!Uses(spec) || options.layout != "aligned" || options.buffer == LayerWiseSpec{}.buffer)
    return "";
  return "layer_wise_buffer = " + options.buffer +
         " with layer_wise_layout = aligned: equal shards are gathered in place";
}

std::string PaddedInBuffer(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || spec.layer_wise.buffer != "grads" || spec.layer_wise.transport != "padded")
    return "";
  return "layer_wise_buffer = grads with layer_wise_transport = padded: pieces of equal size do "
         "not "
         "fit in the bucket";
}

std::string BufferTooSmall(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || spec.layer_wise.buffer != "grads" || spec.main_grads_dtype != "bf16" ||
      spec.param_dtype != "fp32")
    return "";
  return "layer_wise_buffer = grads with main_grads_dtype = bf16 and param_dtype = fp32: values "
         "are "
         "larger than the gradients they would arrive in";
}

}  // namespace

std::vector<IllegalRule> IllegalLayerWiseRules() {
  return {
      {"layer-wise-options", NeedsStrategy},
      {"layer-wise-layout-word", LayoutWord},
      {"layer-wise-transport-word", TransportWord},
      {"layer-wise-buffer-word", BufferWord},
      {"layer-wise-one-instance", OneInstance},
      {"layer-wise-gather-needs-reduce", GatherNeedsReduce},
      {"layer-wise-user-buffers", UserBuffers},
      {"layer-wise-aligned-transport", AlignedTransport},
      {"layer-wise-aligned-buffer", AlignedBuffer},
      {"layer-wise-padded-in-buffer", PaddedInBuffer},
      {"layer-wise-buffer-too-small", BufferTooSmall},
  };
}

}  // namespace shardproof
