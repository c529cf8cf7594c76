#include "conformance/fabric/mpi/meetings.h"

#include <utility>

namespace shardproof::mpi {

MeetingPlace PlaceOf(const WireHeader& header) {
  using Kind = MeetingPlace::Kind;
  MeetingPlace place{header.group, Kind::kCollective, -1, header.position};
  switch (header.kind) {
    case MessageKind::kSendPart:
      place.kind = Kind::kRecv;
      place.peer = header.from_member;
      break;
    case MessageKind::kRecvPart:
      place.kind = Kind::kSend;
      place.peer = header.from_member;
      break;
    case MessageKind::kCreate:
      place.kind = Kind::kCreate;
      break;
    case MessageKind::kDestroy:
      place.kind = Kind::kDestroy;
      break;
    case MessageKind::kRegister:
      place.kind = Kind::kRegister;
      break;
    default:
      break;
  }
  return place;
}

const Meeting* Meetings::Find(const MeetingPlace& place) const {
  const auto found = meetings_.find(place);
  return found == meetings_.end() ? nullptr : &found->second;
}

Meeting Meetings::Take(const MeetingPlace& place) {
  const auto found = meetings_.find(place);
  Meeting meeting = std::move(found->second);
  meetings_.erase(found);
  return meeting;
}

}  // namespace shardproof::mpi
