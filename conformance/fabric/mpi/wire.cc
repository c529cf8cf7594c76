#include "conformance/fabric/mpi/wire.h"

#include <algorithm>
#include <cstring>

#include "conformance/fabric/collective_math.h"
#include "conformance/fabric/run_collective.h"

namespace shardproof::mpi {
namespace {

constexpr uint64_t kAlign = 64;

uint64_t SumBefore(const std::vector<uint64_t>& counts, int32_t n) {
  uint64_t sum = 0;
  for (size_t i = 0; i < counts.size() && i < static_cast<size_t>(n); ++i) sum += counts[i];
  return sum;
}

// all_to_all_v by hand: what arrived is cut to what is expected.
void FinishAllToAll(const CommOp& op, int32_t me, const std::vector<const WireMessage*>& all) {
  const uint64_t width = DtypeBytes(op.dtype);
  const PayloadRange own = PayloadFor(op, me, me, static_cast<int32_t>(all.size()));
  std::byte* to = op.recv;
  for (size_t j = 0; j < all.size() && j < op.recv_counts.size(); ++j) {
    const bool mine = j == static_cast<size_t>(me);
    const uint64_t expected = op.recv_counts[j] * width;
    const uint64_t bytes = std::min(expected, mine ? own.bytes : all[j]->header.payload);
    if (bytes) std::memmove(to, mine ? op.send + own.offset : all[j]->payload, bytes);
    to += expected;
  }
}

}  // namespace

uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

uint64_t HashRanks(const std::vector<int32_t>& ranks) {
  return HashText({reinterpret_cast<const char*>(ranks.data()), ranks.size() * sizeof(int32_t)});
}

uint64_t PayloadOffset(const WireHeader& header) {
  const uint64_t head = sizeof(WireHeader) + 8 * (header.send_counts + header.recv_counts);
  return (head + kAlign - 1) & ~(kAlign - 1);
}

uint64_t MessageBytes(const WireHeader& header) { return PayloadOffset(header) + header.payload; }

void SetShape(const CommOp& op, WireHeader* header) {
  header->collective = op.kind;
  header->dtype = op.dtype;
  header->reduction = op.reduction;
  header->peer = op.peer;
  header->count = op.count;
  header->send_counts = op.send_counts.size();
  header->recv_counts = op.recv_counts.size();
}

void WriteMessage(const WireHeader& header, const CommOp* op, const std::byte* payload,
                  std::byte* to) {
  std::memcpy(to, &header, sizeof header);
  std::byte* at = to + sizeof header;
  if (header.send_counts) std::memcpy(at, op->send_counts.data(), 8 * header.send_counts);
  at += 8 * header.send_counts;
  if (header.recv_counts) std::memcpy(at, op->recv_counts.data(), 8 * header.recv_counts);
  if (header.payload) std::memcpy(to + PayloadOffset(header), payload, header.payload);
}

std::optional<WireMessage> ReadMessage(const std::byte* data, uint64_t bytes) {
  WireMessage message;
  if (bytes < sizeof(WireHeader)) return std::nullopt;
  std::memcpy(&message.header, data, sizeof(WireHeader));
  const WireHeader& header = message.header;
  if (header.send_counts > bytes || header.recv_counts > bytes || header.payload > bytes ||
      MessageBytes(header) != bytes) {
    return std::nullopt;
  }
  CommOp& op = message.op;
  op.kind = header.collective;
  op.dtype = header.dtype;
  op.reduction = header.reduction;
  op.peer = header.peer;
  op.count = header.count;
  op.send_counts.resize(header.send_counts);
  op.recv_counts.resize(header.recv_counts);
  const std::byte* at = data + sizeof header;
  if (header.send_counts) std::memcpy(op.send_counts.data(), at, 8 * header.send_counts);
  at += 8 * header.send_counts;
  if (header.recv_counts) std::memcpy(op.recv_counts.data(), at, 8 * header.recv_counts);
  message.payload = data + PayloadOffset(header);
  return message;
}

PayloadRange PayloadFor(const CommOp& op, int32_t me, int32_t to, int32_t members) {
  const uint64_t width = DtypeBytes(op.dtype);
  const auto index = static_cast<uint64_t>(to);
  if (op.kind == SPF_REDUCE_SCATTER) return {index * op.count * width, op.count * width};
  if (op.kind == SPF_ALL_TO_ALL_V) {
    const uint64_t count = index < op.send_counts.size() ? op.send_counts[index] : 0;
    return {SumBefore(op.send_counts, to) * width, count * width};
  }
  return {0, SendBytes(op, me, members)};
}

void FinishCollective(const CommOp& op, int32_t me, const std::vector<const WireMessage*>& all) {
  if (op.kind == SPF_ALL_TO_ALL_V) return FinishAllToAll(op, me, all);
  // What a peer sent is what RunCollective needs of it, whatever the peer thought that it was
  // doing: plain bytes.
  std::vector<CommOp> shapes(all.size());
  std::vector<MemberData> contributions(all.size());
  for (size_t j = 0; j < all.size(); ++j) {
    CommOp& shape = shapes[j];
    if (j == static_cast<size_t>(me)) {
      shape = op;
      // My piece of everybody, summed: an all_reduce of one piece.
      if (op.kind == SPF_REDUCE_SCATTER) {
        shape.kind = SPF_ALL_REDUCE;
        shape.send = op.send + PayloadFor(op, me, me, static_cast<int32_t>(all.size())).offset;
      }
      contributions[j] = {&shape, shape.send};
      continue;
    }
    shape.kind = SPF_ALL_GATHER;
    shape.dtype = SPF_U8;
    shape.count = all[j]->header.payload;
    contributions[j] = {&shape, all[j]->payload};
  }
  RunCollective(contributions, me);
}

}  // namespace shardproof::mpi
