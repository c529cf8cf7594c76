#include "conformance/checks/graph/operation_signature.h"

#include "conformance/abi/shardproof.h"
#include "conformance/checks/graph/collective_kinds.h"
#include "conformance/checks/graph/describe.h"
#include "conformance/trace/digest.h"

namespace shardproof::graph {

namespace {

const char* Dtype(uint8_t dtype) {
  static constexpr const char* kNames[] = {"none", "u8", "i32", "i64", "bf16", "f16", "f32", "f64"};
  return dtype < std::size(kNames) ? kNames[dtype] : "unknown dtype";
}

}  // namespace

uint64_t HashOn(uint64_t seed, uint64_t value) {
  return Mix(seed * 0x9E3779B97F4A7C15u + Mix(value + 1));
}

Signature SignatureOf(const Trace& trace, const Event& event, bool labels) {
  const bool rooted = event.collective == SPF_BROADCAST ||
                      (event.collective >= kReduce && event.collective != kBarrier);
  const bool reduces = event.collective == SPF_REDUCE_SCATTER ||
                       event.collective == SPF_ALL_REDUCE || event.collective == kReduce;
  Signature signature;
  signature.shape = static_cast<uint64_t>(event.collective) |
                    static_cast<uint64_t>(event.dtype) << 8 |
                    (reduces ? static_cast<uint64_t>(event.reduction) << 16 : 0) |
                    (rooted ? static_cast<uint64_t>(static_cast<uint32_t>(event.peer)) << 24 : 0);
  if (labels) {
    signature.shape = HashOn(signature.shape, static_cast<uint64_t>(event.purpose) << 32 |
                                                  static_cast<uint32_t>(event.module));
    signature.shape = HashOn(signature.shape, static_cast<uint32_t>(event.microbatch));
  }
  if (event.collective == SPF_ALL_TO_ALL_V) return signature;
  signature.counts = static_cast<uint64_t>(event.count);
  if (event.collective == SPF_ALL_GATHER_V) {
    signature.counts = 0;
    for (uint32_t i = event.recv_counts.begin; i < event.recv_counts.end; ++i) {
      signature.counts = HashOn(signature.counts, static_cast<uint64_t>(trace.numbers[i]));
    }
  }
  return signature;
}

std::string DescribeFully(const Program& program, const Part& part) {
  const Event& event = program.event(part);
  const Trace& trace = program.trace(part.rank);
  std::string text = Describe(trace, event, program.names) + ", " + Dtype(event.dtype) + " x ";
  if (event.collective == SPF_ALL_GATHER_V || event.collective == SPF_ALL_TO_ALL_V) {
    text += "[";
    for (uint32_t i = event.recv_counts.begin; i < event.recv_counts.end; ++i) {
      text += (i > event.recv_counts.begin ? " " : "") + std::to_string(trace.numbers[i]);
    }
    text += "]";
  } else {
    text += std::to_string(event.count);
  }
  if (event.collective == SPF_BROADCAST ||
      (event.collective >= kReduce && event.collective != kBarrier)) {
    text += ", root " + std::to_string(event.peer);
  }
  if (event.reduction == SPF_AVG) text += ", average";
  return text;
}

}  // namespace shardproof::graph
