// illegal.h's rules about layer-wise engines.
#include "conformance/cases/illegal.h"

namespace shardproof {
namespace {

bool Uses(const InstanceSpec& spec) { return spec.strategy == ShardingStrategy::kLayerWise; }

std::string NeedsStrategy(const InstanceSpec& spec, int32_t) {
  if (Uses(spec)) return "";
  const InstanceSpec usual;
  for (const Knob& knob : KnobTable()) {
    if (knob.only != For::kLayerWise || knob.text(spec) == knob.text(usual)) continue;
    return knob.name + " = " + knob.text(spec) + " with strategy = " + spec.strategy.Text() +
           ": it needs layer_wise";
  }
  return "";
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
  if (!Uses(spec) || options.layout != LayerWiseLayout::kAligned ||
      options.transport == LayerWiseSpec{}.transport)
    return "";
  return "layer_wise_transport = " + options.transport.Text() +
         " with layer_wise_layout = aligned: equal shards are gathered in place";
}

std::string AlignedBuffer(const InstanceSpec& spec, int32_t) {
  const LayerWiseSpec& options = spec.layer_wise;
  if (!Uses(spec) || options.layout != LayerWiseLayout::kAligned ||
      options.buffer == LayerWiseSpec{}.buffer)
    return "";
  return "layer_wise_buffer = " + options.buffer.Text() +
         " with layer_wise_layout = aligned: equal shards are gathered in place";
}

std::string PaddedInBuffer(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || spec.layer_wise.buffer != LayerWiseBuffer::kGrads ||
      spec.layer_wise.transport != LayerWiseTransport::kPadded)
    return "";
  return "layer_wise_buffer = grads with layer_wise_transport = padded: pieces of equal size do "
         "not "
         "fit in the bucket";
}

std::string BufferTooSmall(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || spec.layer_wise.buffer != LayerWiseBuffer::kGrads ||
      spec.main_grads_dtype != KnobDtype::kBf16 || spec.param_dtype != KnobDtype::kFp32)
    return "";
  return "layer_wise_buffer = grads with main_grads_dtype = bf16 and param_dtype = fp32: values "
         "are "
         "larger than the gradients they would arrive in";
}

}  // namespace

std::vector<IllegalRule> IllegalLayerWiseRules() {
  return {
      {"layer-wise-options",
       NeedsStrategy,
       {"w4.ddp.aligned", "w8.zero3.bcast", "w2.zero1.gradbuf"}},
      {"layer-wise-user-buffers", UserBuffers, {"w4.lw.ub", "w2.lw.ogr.opg.ub.aligned"}},
      WordRule("layer-wise-layout-word", "layer_wise_layout", {"w4.lw.layout=sliced"}),
      WordRule("layer-wise-transport-word", "layer_wise_transport", {"w3.lw.transport=gossip"}),
      WordRule("layer-wise-buffer-word", "layer_wise_buffer", {"w8.lw.ogr.opg.buffer=params"}),
      {"layer-wise-one-instance",
       OneInstance,
       {"w8.lw.n2", "w6.lw.n3.ogr.opg.aligned", "w8.lw.n2.twin.adamw.ep2.moe4"}},
      {"layer-wise-gather-needs-reduce", GatherNeedsReduce, {"w4.lw.opg", "w8.lw.opg.bf16.bcast"}},
      {"layer-wise-aligned-transport",
       AlignedTransport,
       {"w4.lw.aligned.bcast", "w5.lw.ogr.opg.aligned.padded"}},
      {"layer-wise-aligned-buffer", AlignedBuffer, {"w8.lw.ogr.opg.aligned.gradbuf"}},
      {"layer-wise-padded-in-buffer",
       PaddedInBuffer,
       {"w4.lw.padded.gradbuf", "w3.lw.ogr.opg.bf16.bs300.padded.gradbuf"}},
      {"layer-wise-buffer-too-small",
       BufferTooSmall,
       {"w4.lw.acc16.gradbuf", "w3.lw.ogr.opg.wire16.acc16.muon.bcast.gradbuf"}},
  };
}

}  // namespace shardproof
