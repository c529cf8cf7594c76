// run_collective.h: which bytes does a collective read, write and wait for, and what does it write?
//
// Pure functions over CommOps. me, peer: ranks of the group; members: its size. Malformed or
// mismatched operations are never read or written out of bounds: what fits is used, and the trace
// checks name the mismatch.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/fabric/fabric.h"

namespace shardproof {

std::string_view CollectiveName(int32_t kind);

// Bytes that op reads from op.send and writes to op.recv on member me.
uint64_t SendBytes(const CommOp& op, int32_t me, int32_t members);
uint64_t RecvBytes(const CommOp& op, int32_t me, int32_t members);

// Does me's result need peer's data, so that me cannot complete before peer has started? The
// smallest set that the semantics imply, not what an implementation may wait for. Not for SEND and
// RECV.
bool NeedsPeer(const CommOp& op, int32_t me, int32_t peer, int32_t members);

// One member's part: its operation and where its send bytes are now (op->send or a copy). op null:
// not there.
struct MemberData {
  const CommOp* op = nullptr;
  const std::byte* send = nullptr;
};

// Writes me's op->recv. Reductions sum in rank order; average: see collective_math.h. all: one
// entry a member. Contributions may alias op->recv. Not for SEND and RECV: a message is a copy of
// min(sent, expected) bytes.
void RunCollective(const std::vector<MemberData>& all, int32_t me);

// Empty, or how two members' operations at one place differ: "all_gather of 8 f32 against
// all_reduce of 8 f32".
std::string Mismatch(const CommOp& a, int32_t a_member, const CommOp& b, int32_t b_member,
                     int32_t members);

}  // namespace shardproof
