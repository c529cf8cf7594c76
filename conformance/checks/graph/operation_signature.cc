#include "conformance/checks/graph/operation_signature.h"

#include <algorithm>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/trace/digest.h"

namespace shardproof::graph {

namespace {

constexpr size_t kShiftMax = 8;       // operations
constexpr size_t kAgreementMax = 16;  // compared

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

// How many operations in a row agree, from the first that differs on, if one list is changed.
class Shifts {
 public:
  using List = std::vector<uint32_t>;
  // Equal shapes may hide an earlier difference that labels show.
  Shifts(const Program& program, const List& odd, const List& usual, size_t position)
      : program_(program), odd_(odd), usual_(usual) {
    while (first_ < position && Equal(odd, first_, usual, first_)) ++first_;
  }
  size_t first() const { return first_; }

  size_t OfMoved(const List& ahead, const List& behind, size_t shift) const {
    return Agreement(0, ahead, behind, shift);
  }
  // So many are the same in another order. What agrees behind them counts as well.
  size_t OfReordered(size_t count) const {
    if (first_ + count > odd_.size() || first_ + count > usual_.size()) return 0;
    std::vector<Signature> others;
    for (size_t i = 0; i < count; ++i) others.push_back(Of(usual_[first_ + i]));
    for (size_t i = 0; i < count; ++i) {
      const auto same = std::find(others.begin(), others.end(), Of(odd_[first_ + i]));
      if (same == others.end()) return 0;
      others.erase(same);
    }
    return std::max(count, Agreement(count, odd_, usual_, 0));
  }

 private:
  Signature Of(uint32_t at) const {
    const Part& part = program_.parts[at];
    return SignatureOf(program_.trace(part.rank), program_.event(part), /*labels=*/true);
  }
  bool Equal(const List& a, size_t i, const List& b, size_t j) const {
    return Of(a[i]) == Of(b[j]);
  }
  size_t Agreement(size_t n, const List& ahead, const List& behind, size_t shift) const {
    while (n < kAgreementMax && first_ + n < ahead.size() && first_ + shift + n < behind.size() &&
           Equal(ahead, first_ + n, behind, first_ + shift + n))
      ++n;
    return n;
  }

  const Program& program_;
  const List &odd_, &usual_;
  size_t first_ = 0;
};

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

std::string ShiftHint(const Program& program, const std::vector<uint32_t>& odd,
                      const std::vector<uint32_t>& usual, size_t position) {
  const Shifts shifts(program, odd, usual, position);
  size_t best = 0, by = 0;
  bool leaves_out = false;
  for (size_t shift = 1; shift <= kShiftMax; ++shift) {
    for (const bool left_out : {true, false}) {
      const size_t n =
          left_out ? shifts.OfMoved(odd, usual, shift) : shifts.OfMoved(usual, odd, shift);
      if (n <= best) continue;
      best = n;
      by = shift;
      leaves_out = left_out;
    }
  }
  size_t reordered = 0, most = 0;
  for (size_t count = 2; count <= kAgreementMax; ++count) {
    const size_t n = shifts.OfReordered(count);
    if (n <= most) continue;
    most = n;
    reordered = count;
  }
  if (best == 0 && most == 0) return "";
  const size_t first = shifts.first();
  const std::string hint = "; rank " + std::to_string(program.parts[odd[0]].rank) + " seems to ",
                    at = "#" + std::to_string(first);
  const std::string last = "#" + std::to_string(first + reordered - 1);
  const bool swap = reordered == 2 && most >= best;
  if (swap || most > best)
    return hint + (reordered == 2 ? "swap operations " + at + " and " + last
                                  : "issue operations " + at + " to " + last + " in another order");
  return hint + (leaves_out ? "leave out " : "add ") + std::to_string(by) +
         (by == 1 ? " operation" : " operations") + " at " + at;
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
