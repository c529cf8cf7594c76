#include "conformance/checks/graph/operation_signature.h"

#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/trace/digest.h"

namespace shardproof::graph {

namespace {

bool HasRoot(const Event& event) {
  return event.collective == SPF_BROADCAST ||
         (event.collective >= kReduce && event.collective != kBarrier);
}

// "root 1 (rank 5)": in the group, and in the world.
std::string RootText(const Trace& trace, const Event& event) {
  std::string text = "root " + std::to_string(event.peer);
  if (event.group < 0 || event.group >= Length(trace.groups)) return text;
  const std::vector<int32_t>& ranks = At(trace.groups, event.group).world_ranks;
  if (event.peer < 0 || event.peer >= Length(ranks)) return text;
  return text + " (rank " + std::to_string(At(ranks, event.peer)) + ")";
}

std::string Dtype(uint8_t dtype) { return dtype == 0 ? "none" : DtypeName(dtype); }

// After the size; nothing for a sum.
const char* ReductionWord(uint8_t reduction) {
  switch (reduction) {
    case SPF_AVG:
      return ", average";
    case kReduceMax:
      return ", maximum";
    case kReduceMin:
      return ", minimum";
    case kReduceProduct:
      return ", product";
    case kReducePremulSum:
      return ", sum of operands times a factor";
    default:
      return "";
  }
}

}  // namespace

uint64_t HashOn(uint64_t seed, uint64_t value) {
  return Mix(seed * 0x9E3779B97F4A7C15u + Mix(value + 1));
}

Signature SignatureOf(const Trace& trace, const Event& event, bool labels) {
  const bool rooted = HasRoot(event);
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

std::string OtherRoots(const Program& program, const Part& odd, const Part& usual,
                       const std::vector<int32_t>& ranks) {
  const Event &one = program.event(odd), &other = program.event(usual);
  const Trace &mine = program.trace(odd.rank), &theirs = program.trace(usual.rank);
  if (!HasRoot(one) || one.peer == other.peer) return "";
  Event alike = one;
  alike.peer = other.peer;
  if (!(SignatureOf(mine, alike, false) == SignatureOf(theirs, other, false))) return "";
  return " differs by its root: rank " + std::to_string(odd.rank) + " names " +
         RootText(mine, one) + ", " + DescribeRanks(ranks) +
         (ranks.size() == 1 ? " names " : " name ") + RootText(theirs, other);
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
  if (HasRoot(event) && event.peer >= 0) text += ", " + RootText(trace, event);
  text += ReductionWord(event.reduction);
  return text;
}

}  // namespace shardproof::graph
