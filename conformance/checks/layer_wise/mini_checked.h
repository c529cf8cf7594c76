// mini_checked.h: what does the family say of a small engine's run, by the case's knobs and by what
// departs?
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "conformance/checks/layer_wise/layer_wise.h"
#include "conformance/checks/testing/mini_layer_wise.h"
#include "conformance/checks/testing/shown.h"

#define FAULT(field) [](LayerWiseFaults& f) { f.field = true; }
#define FAULT_ON(where, field) [](LayerWiseFaults& f) { f.rank = where, f.field = true; }

namespace shardproof {

using Edit = std::function<void(InstanceSpec&)>;
using Fault = std::function<void(LayerWiseFaults&)>;

inline std::string First(const CheckResult& result) {
  std::string text;
  for (size_t i = 0; i < result.findings.size() && i < 3; ++i) {
    const Finding& f = result.findings[i];
    text += f.requirement + " rank " + std::to_string(f.rank) + " event " +
            std::to_string(f.event) + " " + f.operation + "\n  expected " + f.expected +
            "\n  seen " + f.seen + "\n  " + f.message + "\n";
  }
  return text;
}

inline CheckResult Checked(const Edit& edit = {}, const Fault& fault = {}, int32_t world = 4) {
  LayerWiseFaults faults;
  if (fault) fault(faults);
  const LayerWiseRun made = RunLayerWise(LayerWiseCase(world, edit), faults);
  const Analysis a(made.run);
  EXPECT_TRUE(a.has_flow()) << a.flow_why();
  return Shown(CheckLayerWise(a));
}

inline void Overlap(InstanceSpec& spec) {
  spec.overlap_param_gather = spec.overlap_grad_reduce = true;
}
inline void Aligned(InstanceSpec& spec) { spec.layer_wise.layout = LayerWiseLayout::kAligned; }
inline void Broadcast(InstanceSpec& spec) {
  spec.layer_wise.transport = LayerWiseTransport::kBroadcast;
}
inline void Padded(InstanceSpec& spec) { spec.layer_wise.transport = LayerWiseTransport::kPadded; }
inline void IntoGrads(InstanceSpec& spec) { spec.layer_wise.buffer = LayerWiseBuffer::kGrads; }
inline void Experts(InstanceSpec& spec) {
  spec.ep = 2;
  spec.model.experts = true;
}
inline Edit operator+(const Edit& x, const Edit& y) {
  return [x, y](InstanceSpec& spec) { x(spec), y(spec); };
}
inline const Edit kPlain = [](InstanceSpec&) {}, kOverlap = Overlap, kAligned = Aligned,
                  kBroadcast = Broadcast, kPadded = Padded, kIntoGrads = IntoGrads,
                  kExperts = Experts;
inline const Edit kSgd = [](InstanceSpec& spec) { spec.optimizer = Optimizer::kSgd; };
inline const Edit kUnused = [](InstanceSpec& spec) { spec.model.unused = "step"; };
inline const Edit kDecay = [](InstanceSpec& spec) { spec.weight_decay = 0.0625; };
inline const Edit kFrozen = [](InstanceSpec& spec) { spec.model.frozen = "embedding"; };
inline const Edit kEval = [](InstanceSpec& spec) { spec.script = "teetett"; };
inline const Edit kLoad = [](InstanceSpec& spec) { spec.script = "tstltrt"; };
inline const Edit kSmallBuckets = [](InstanceSpec& spec) { spec.bucket_size = 1; };
inline const Edit kOneBucket = [](InstanceSpec& spec) { spec.bucket_size = 0; };

}  // namespace shardproof
