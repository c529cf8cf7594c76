// wire.h: what do two ranks say to each other when an operation starts, and what does a child say
// to its supervisor?
//
// Every member of an operation tells every other member that it has started, what it believes the
// operation to be, and the bytes that this peer needs. So operations meet by communicator and place
// without any agreement beforehand, and operations that are not alike are noticed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/fabric/fabric.h"

namespace shardproof::mpi {

enum class MessageKind : int32_t {
  // rank to rank
  kCollective = 1,  // position: among the collectives of the communicator
  kSendPart,        // position: among the messages of this pair; from the sender: with payload
  kRecvPart,        // from the receiver: without
  kCreate,          // host call; payload: the list of world ranks
  kDestroy,         // host call
  kRegister,        // host call
  // child to its supervisor (to == kToSupervisor)
  kReturned,   // payload: what rank_main returned
  kException,  // payload: what it threw
  kMismatch,   // payload: text
  kFailed,     // payload: the reason given to Fail
  kPending     // payload: PendingText, after an abort
};
constexpr int32_t kToSupervisor = -1;

struct WireHeader {
  uint64_t epoch = 0;  // case number
  MessageKind kind = MessageKind::kCollective;
  int32_t source = -1;   // world rank
  uint64_t group = 0;    // hash of the communicator's key
  uint64_t members = 0;  // hash of its members
  int64_t position = 0;
  int32_t from_member = -1, zero = 0;
  int32_t collective = 0, dtype = 0, reduction = 0, peer = -1;
  uint64_t count = 0, send_counts = 0, recv_counts = 0;  // the last two: how many follow
  uint64_t payload = 0;                                  // bytes, after the counts
};

uint64_t HashText(std::string_view text);
uint64_t HashRanks(const std::vector<int32_t>& ranks);

// Bytes of a message with this header, and where its parts are.
uint64_t MessageBytes(const WireHeader& header);
uint64_t PayloadOffset(const WireHeader& header);

// Fills header's shape from op; send_counts and recv_counts too.
void SetShape(const CommOp& op, WireHeader* header);
// REQUIRES: to has MessageBytes(header). Counts are op's; op may be null if there are none.
void WriteMessage(const WireHeader& header, const CommOp* op, const std::byte* payload,
                  std::byte* to);

struct WireMessage {
  WireHeader header;
  CommOp op;  // the sender's, without pointers, group, stream and what
  const std::byte* payload = nullptr;
};
// nullopt: not a message of ours (too short, or lengths that do not fit).
std::optional<WireMessage> ReadMessage(const std::byte* data, uint64_t bytes);

// The bytes of op.send that member to needs from member me.
struct PayloadRange {
  uint64_t offset = 0, bytes = 0;
};
PayloadRange PayloadFor(const CommOp& op, int32_t me, int32_t to, int32_t members);

// Computes op's result on member me: all[j] is what member j sent to me; all[me] is not read.
void FinishCollective(const CommOp& op, int32_t me, const std::vector<const WireMessage*>& all);

}  // namespace shardproof::mpi
