// communicate(): everything is checked before anything is enqueued.
#include <numeric>

#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/fabric/run_collective.h"
#include "conformance/host/host_internal.h"

namespace shardproof {

struct Host::CheckedOp {
  CommOp op;
  Event row;
  std::vector<int64_t> send_counts, recv_counts;
  std::vector<Range> ranges;
};

namespace {

constexpr uint64_t kMostCount = uint64_t{1} << 40;

// Elements this rank sends and receives.
struct Extent {
  uint64_t send = 0, recv = 0;
};

uint64_t Sum(const std::vector<uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

Extent ExtentOf(const CommOp& op, uint64_t members, int32_t me) {
  switch (op.kind) {
    case SPF_ALL_GATHER:
      return {op.count, op.count * members};
    case SPF_ALL_GATHER_V:
      return {At(op.recv_counts, me), Sum(op.recv_counts)};
    case SPF_REDUCE_SCATTER:
      return {op.count * members, op.count};
    case SPF_BROADCAST:
      return {me == op.peer ? op.count : 0, op.count};
    case SPF_ALL_TO_ALL_V:
      return {Sum(op.send_counts), Sum(op.recv_counts)};
    case SPF_SEND:
      return {op.count, 0};
    case SPF_RECV:
      return {0, op.count};
    default:
      return {op.count, op.count};
  }
}

// The offset of send in recv (or of recv in send for reduce_scatter), in elements, that counts as
// in place.
uint64_t InPlaceOffset(const CommOp& op, int32_t me) {
  if (op.kind == SPF_ALL_GATHER || op.kind == SPF_REDUCE_SCATTER)
    return op.count * static_cast<uint64_t>(me);
  if (op.kind == SPF_ALL_GATHER_V) {
    return std::accumulate(op.recv_counts.begin(), op.recv_counts.begin() + me, uint64_t{0});
  }
  return 0;
}

void CheckOverlap(const CommOp& op, spf_addr send, uint64_t send_bytes, spf_addr recv,
                  uint64_t recv_bytes, int32_t me, const std::string& what) {
  if (send_bytes == 0 || recv_bytes == 0 || send + send_bytes <= recv || recv + recv_bytes <= send)
    return;
  const uint64_t shift = InPlaceOffset(op, me) * DtypeBytes(op.dtype);
  const bool exact = op.kind == SPF_REDUCE_SCATTER ? recv == send + shift : send == recv + shift;
  RefuseUnless(exact && op.kind != SPF_ALL_TO_ALL_V,
               what + ": send and recv overlap without being the exact in-place form of " +
                   std::string(CollectiveName(op.kind)) +
                   ": use the form that shardproof.h defines, or disjoint buffers");
}

std::vector<uint64_t> Counts(const uint64_t* counts, size_t members, const std::string& what) {
  RefuseUnless(counts != nullptr, what + " is NULL: one count per member is needed");
  for (size_t i = 0; i < members; ++i) {
    if (counts[i] <= kMostCount) continue;  // no words for each of thousands
    RefuseUnless(false, what + "[" + std::to_string(i) + "] " + std::to_string(counts[i]) +
                            " cannot be meant");
  }
  return {counts, counts + members};
}

bool HasPeer(const spf_collective& op) {
  return op.kind == SPF_BROADCAST || op.kind == SPF_SEND || op.kind == SPF_RECV;
}

// Who is the root is part of what may be wrong.
std::string SenderName(const spf_collective& op) {
  if (op.kind != SPF_BROADCAST) return ".send";
  return ".send (of the broadcast's root: peer " + std::to_string(op.peer) + " is this rank)";
}

// The event of an operation that has been checked, without its ranges and counts.
Event RowOf(const spf_collective& op, const CommOp& checked, int32_t local_group) {
  Event row;
  row.kind = EventKind::kCollective;
  row.collective = static_cast<uint8_t>(op.kind);
  row.dtype = static_cast<uint8_t>(op.dtype);
  row.reduction = static_cast<uint8_t>(op.reduction);
  row.group = local_group;
  row.stream = checked.stream;
  row.count = static_cast<int64_t>(op.count);
  row.peer = checked.peer;
  row.purpose = op.label.purpose;
  row.module = op.label.module1 - 1;
  row.microbatch = op.label.microbatch1 - 1;
  return row;
}

}  // namespace

void Host::CheckFields(const spf_collective& op, const GroupHandle& group,
                       const std::string& what) const {
  RefuseUnless(op.kind >= SPF_ALL_GATHER && op.kind <= SPF_RECV,
               what + ".kind " + std::to_string(op.kind) + " is no spf_collective_kind");
  RefuseUnless(IsDtype(op.dtype), what + ".dtype " + std::to_string(op.dtype) + " is no spf_dtype");
  RefuseUnless(op.reduction == SPF_SUM || op.reduction == SPF_AVG,
               what + ".reduction " + std::to_string(op.reduction) + " is no spf_reduction");
  RefuseUnless(op.reduction == SPF_SUM || IsFloating(op.dtype),
               what + ".reduction SPF_AVG needs a floating dtype, not " + DtypeName(op.dtype));
  RefuseUnless(op.count <= kMostCount,
               what + ".count " + std::to_string(op.count) + " cannot be meant");
  const size_t members = group.world_ranks.size();
  RefuseUnless(!HasPeer(op) || (op.peer >= 0 && static_cast<size_t>(op.peer) < members),
               what + ".peer " + std::to_string(op.peer) + " is no rank of group \"" + group.name +
                   "\" (0.." + std::to_string(members - 1) + ")");
}

Host::CheckedOp Host::CheckOp(const spf_collective& op, const std::string& what) {
  const GroupHandle& group = Group(op.group, (what + ".group").c_str());
  const StreamHandle& stream = Stream(op.stream, (what + ".stream").c_str());
  const size_t members = group.world_ranks.size();
  CheckFields(op, group, what);
  CheckLabel(op.label, what + ".label");
  CheckedOp checked;
  CommOp& out = checked.op;
  out.kind = op.kind;
  out.dtype = op.dtype;
  out.reduction = op.reduction;
  out.group = group.fabric_id;
  out.stream = stream.id;
  out.count = op.count;
  out.peer = HasPeer(op) ? op.peer : -1;
  if (op.kind == SPF_ALL_TO_ALL_V)
    out.send_counts = Counts(op.send_counts, members, what + ".send_counts");
  if (op.kind == SPF_ALL_TO_ALL_V || op.kind == SPF_ALL_GATHER_V) {
    out.recv_counts = Counts(op.recv_counts, members, what + ".recv_counts");
  }
  const Extent extent = ExtentOf(out, members, group.rank);
  if (extent.send > 0) {
    const std::string name = what + SenderName(op);
    const Resolved send = ResolveElements(op.send, extent.send, op.dtype, kRead, name);
    out.send = send.host;
    checked.ranges.push_back(send.range);
  }
  if (extent.recv > 0) {
    const Resolved recv = ResolveElements(op.recv, extent.recv, op.dtype, kWrite, what + ".recv");
    out.recv = recv.host;
    checked.ranges.push_back(recv.range);
  }
  const uint64_t element = DtypeBytes(op.dtype);
  CheckOverlap(out, op.send, extent.send * element, op.recv, extent.recv * element, group.rank,
               what);
  out.what = std::string(CollectiveName(op.kind)) + " of " + ForWhat(op.label) + " on " +
             group.name + ", stream " + stream.name;
  checked.row = RowOf(op, out, group.local_id);
  checked.send_counts.assign(out.send_counts.begin(), out.send_counts.end());
  checked.recv_counts.assign(out.recv_counts.begin(), out.recv_counts.end());
  return checked;
}

// "expert_tokens (layers.0.moe.dispatch, microbatch 1)", as far as the label says.
std::string Host::ForWhat(const spf_label& label) const {
  const spf_model& tables = model_.Tables(config_.model_rank);
  std::string about;
  if (label.module1 > 0 && label.module1 <= tables.n_modules)
    about = tables.modules[label.module1 - 1].name;
  if (label.microbatch1 > 0) {
    about += (about.empty() ? "" : ", ") + std::string("microbatch ") +
             std::to_string(label.microbatch1 - 1);
  }
  return PurposeName(label.purpose) + (about.empty() ? about : " (" + about + ")");
}

spf_status Host::Communicate(int32_t n, const spf_collective* ops) {
  std::vector<CheckedOp> checked;
  checked.reserve(static_cast<size_t>(n));
  for (int32_t i = 0; i < n; ++i)
    checked.push_back(CheckOp(ops[i], "ops[" + std::to_string(i) + "]"));
  if (n > 1) Add(EventKind::kGroupBegin);
  std::vector<CommOp> out;
  out.reserve(checked.size());
  for (CheckedOp& op : checked) {
    Event& row = recorder_.Add(EventKind::kCollective, config_.instance);
    op.row.instance = row.instance;
    op.row.call = call_;
    row = op.row;
    for (const Range& range : op.ranges) recorder_.AddRange(range);
    recorder_.AddNumbers(&Event::send_counts, op.send_counts.data(), op.send_counts.size());
    recorder_.AddNumbers(&Event::recv_counts, op.recv_counts.data(), op.recv_counts.size());
    out.push_back(std::move(op.op));
  }
  if (n > 1) Add(EventKind::kGroupEnd);
  collectives_ += n;
  fabric_.Communicate(std::move(out));
  return SPF_OK;
}

}  // namespace shardproof
