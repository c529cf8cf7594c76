// meetings.h: which members of an operation have started, as far as this rank has heard?
//
// The matching table of one rank. Messages of peers and the rank's own start meet here in whatever
// order they come.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "conformance/fabric/device.h"
#include "conformance/fabric/mpi/wire.h"

namespace shardproof::mpi {

// Where an operation of this rank takes place.
struct MeetingPlace {
  enum class Kind : int32_t { kCollective, kSend, kRecv, kCreate, kDestroy, kRegister };
  uint64_t group = 0;
  Kind kind = Kind::kCollective;
  int32_t peer = -1;  // kSend, kRecv: member
  int64_t position = 0;
  auto operator<=>(const MeetingPlace&) const = default;
};

struct ArrivedPart {
  WireMessage message;
  std::byte* block = nullptr;  // to be given back to the channel
};

struct Meeting {
  std::map<int32_t, ArrivedPart> arrived;  // by member
  int32_t needed = -1;                     // -1: this rank has not started
  EntryId entry = -1;                      // of this rank; -1: a host call
  int32_t op = -1;                         // in the entry
  bool complete() const { return needed >= 0 && static_cast<int32_t>(arrived.size()) >= needed; }
};

// Where a peer's message belongs on this rank. REQUIRES: a rank-to-rank kind.
MeetingPlace PlaceOf(const WireHeader& header);

class Meetings {
 public:
  Meeting& At(const MeetingPlace& place) { return meetings_[place]; }
  const Meeting* Find(const MeetingPlace& place) const;
  Meeting Take(const MeetingPlace& place);

 private:
  std::map<MeetingPlace, Meeting> meetings_;
};

}  // namespace shardproof::mpi
