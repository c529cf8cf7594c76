#include "conformance/fabric/run_collective.h"

#include <algorithm>
#include <cstring>

#include "conformance/common/dtype.h"
#include "conformance/fabric/collective_math.h"

namespace shardproof {
namespace {

uint64_t At(const std::vector<uint64_t>& counts, int32_t i) {
  return static_cast<size_t>(i) < counts.size() ? counts[static_cast<size_t>(i)] : 0;
}
uint64_t SumBefore(const std::vector<uint64_t>& counts, int32_t i) {
  uint64_t sum = 0;
  for (int32_t k = 0; k < i; ++k) sum += At(counts, k);
  return sum;
}

// A piece of somebody's send bytes.
struct Piece {
  const std::byte* data = nullptr;
  uint64_t bytes = 0;
};

// Bytes [offset, offset + bytes) of the contribution, cut to what it really sends.
Piece Cut(const MemberData& from, int32_t peer, int32_t members, uint64_t offset, uint64_t bytes) {
  if (!from.op || !from.send) return {};
  const uint64_t sent = SendBytes(*from.op, peer, members);
  if (offset >= sent) return {};
  return {from.send + offset, std::min(bytes, sent - offset)};
}

void CopyTo(std::byte* to, const Piece& piece) {
  if (piece.bytes) std::memmove(to, piece.data, piece.bytes);
}

// recv = sum over members of their bytes [offset, offset + count elements).
void Reduce(const std::vector<MemberData>& all, const CommOp& op, uint64_t offset) {
  const auto members = static_cast<int32_t>(all.size());
  const uint64_t width = DtypeBytes(op.dtype), bytes = op.count * width;
  const bool average = op.reduction == SPF_AVG;
  std::vector<std::byte> sum(bytes), scaled;
  bool first = true;
  for (int32_t peer = 0; peer < members; ++peer) {
    Piece piece = Cut(all[static_cast<size_t>(peer)], peer, members, offset, bytes);
    const uint64_t count = width ? piece.bytes / width : 0;
    if (average && count) {
      scaled.assign(piece.data, piece.data + piece.bytes);
      ScaleForAverage(scaled.data(), count, op.dtype, members);
      piece.data = scaled.data();
    }
    if (first) {
      CopyTo(sum.data(), piece);  // not 0 + x: keeps -0
    } else {
      AddInto(sum.data(), piece.data, count, op.dtype);
    }
    first = false;
  }
  if (average) FinishAverage(sum.data(), op.count, op.dtype, members);
  CopyTo(op.recv, {sum.data(), bytes});
}

// Pieces of recv_counts elements, one a member, packed in rank order; offset(peer) is where it lies
// in peer's send.
template <class Offset>
void GatherV(const std::vector<MemberData>& all, const CommOp& op, Offset offset) {
  const auto members = static_cast<int32_t>(all.size());
  const uint64_t width = DtypeBytes(op.dtype);
  std::byte* to = op.recv;
  for (int32_t peer = 0; peer < members; ++peer) {
    const uint64_t bytes = At(op.recv_counts, peer) * width;
    CopyTo(to, Cut(all[static_cast<size_t>(peer)], peer, members, offset(peer), bytes));
    to += bytes;
  }
}

std::string Shape(const CommOp& op, int32_t me, int32_t members) {
  std::string text(CollectiveName(op.kind));
  text += ", " + DtypeName(op.dtype) + ", sends " + std::to_string(SendBytes(op, me, members)) +
          " bytes";
  text += ", receives " + std::to_string(RecvBytes(op, me, members)) + " bytes";
  if (op.kind == SPF_BROADCAST) text += ", root " + std::to_string(op.peer);
  if (op.reduction == SPF_AVG) text += ", avg";
  return text;
}

}  // namespace

std::string_view CollectiveName(int32_t kind) {
  constexpr std::string_view kNames[] = {
      "?",          "all_gather", "all_gather_v", "reduce_scatter",
      "all_reduce", "broadcast",  "all_to_all_v", "send",
      "recv"};
  return kind >= 1 && kind <= SPF_RECV ? kNames[kind] : kNames[0];
}

uint64_t SendBytes(const CommOp& op, int32_t me, int32_t members) {
  const uint64_t width = DtypeBytes(op.dtype);
  switch (op.kind) {
    case SPF_ALL_GATHER:
    case SPF_ALL_REDUCE:
    case SPF_SEND:
      return op.count * width;
    case SPF_ALL_GATHER_V:
      return At(op.recv_counts, me) * width;
    case SPF_REDUCE_SCATTER:
      return op.count * static_cast<uint64_t>(members) * width;
    case SPF_BROADCAST:
      return op.peer == me ? op.count * width : 0;
    case SPF_ALL_TO_ALL_V:
      return SumBefore(op.send_counts, members) * width;
    default:
      return 0;
  }
}

uint64_t RecvBytes(const CommOp& op, int32_t, int32_t members) {
  const uint64_t width = DtypeBytes(op.dtype);
  switch (op.kind) {
    case SPF_ALL_GATHER:
      return op.count * static_cast<uint64_t>(members) * width;
    case SPF_REDUCE_SCATTER:
    case SPF_ALL_REDUCE:
    case SPF_BROADCAST:
    case SPF_RECV:
      return op.count * width;
    case SPF_ALL_GATHER_V:
    case SPF_ALL_TO_ALL_V:
      return SumBefore(op.recv_counts, members) * width;
    default:
      return 0;
  }
}

bool NeedsPeer(const CommOp& op, int32_t me, int32_t peer, int32_t) {
  if (peer == me) return true;
  switch (op.kind) {
    case SPF_ALL_GATHER:
    case SPF_REDUCE_SCATTER:
    case SPF_ALL_REDUCE:
      return op.count > 0;
    case SPF_ALL_GATHER_V:
    case SPF_ALL_TO_ALL_V:
      return At(op.recv_counts, peer) > 0;
    case SPF_BROADCAST:
      return op.peer == peer && op.count > 0;
    default:
      return false;
  }
}

void RunCollective(const std::vector<MemberData>& all, int32_t me) {
  const CommOp& op = *all[static_cast<size_t>(me)].op;
  const auto members = static_cast<int32_t>(all.size());
  const uint64_t width = DtypeBytes(op.dtype), bytes = op.count * width;
  switch (op.kind) {
    case SPF_ALL_GATHER:
      for (int32_t peer = 0; peer < members; ++peer) {
        CopyTo(op.recv + static_cast<uint64_t>(peer) * bytes,
               Cut(all[static_cast<size_t>(peer)], peer, members, 0, bytes));
      }
      return;
    case SPF_ALL_GATHER_V:
      return GatherV(all, op, [](int32_t) { return uint64_t{0}; });
    case SPF_REDUCE_SCATTER:
      return Reduce(all, op, static_cast<uint64_t>(me) * bytes);
    case SPF_ALL_REDUCE:
      return Reduce(all, op, 0);
    case SPF_BROADCAST:
      if (op.peer >= 0 && op.peer < members) {
        CopyTo(op.recv, Cut(all[static_cast<size_t>(op.peer)], op.peer, members, 0, bytes));
      }
      return;
    case SPF_ALL_TO_ALL_V:
      return GatherV(all, op, [&](int32_t peer) {
        const CommOp* theirs = all[static_cast<size_t>(peer)].op;
        return theirs ? SumBefore(theirs->send_counts, me) * DtypeBytes(theirs->dtype) : 0;
      });
    default:
      return;
  }
}

std::string Mismatch(const CommOp& a, int32_t a_member, const CommOp& b, int32_t b_member,
                     int32_t members) {
  bool same = a.kind == b.kind && a.dtype == b.dtype && a.reduction == b.reduction;
  if (same && a.kind == SPF_ALL_TO_ALL_V) {
    same = At(a.send_counts, b_member) == At(b.recv_counts, a_member) &&
           At(b.send_counts, a_member) == At(a.recv_counts, b_member);
  } else if (same && a.kind == SPF_ALL_GATHER_V) {
    for (int32_t i = 0; i < members; ++i)
      same = same && At(a.recv_counts, i) == At(b.recv_counts, i);
  } else if (same) {
    same = a.count == b.count && (a.kind != SPF_BROADCAST || a.peer == b.peer);
  }
  if (same) return "";
  return Shape(a, a_member, members) + " against " + Shape(b, b_member, members);
}

}  // namespace shardproof
