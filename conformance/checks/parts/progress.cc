#include "conformance/checks/parts/progress.h"

#include <algorithm>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/common/at.h"

namespace shardproof::parts {

int32_t Progress::MeetingOf(const std::string& key, const std::vector<int32_t>& ranks) {
  const auto [at, fresh] = by_key_.try_emplace(key, static_cast<int32_t>(meetings_.size()));
  if (fresh) meetings_.push_back({ranks, std::vector<int64_t>(ranks.size()), false});
  if (At(meetings_, at->second).ranks != ranks) disputed_ = true;
  return at->second;
}

void Progress::Count(Seat seat) {
  if (disputed_) return;  // places may lie elsewhere
  Meeting& of = At(meetings_, seat.meeting);
  ++At(of.counts, seat.place);
  if (!std::exchange(of.touched, true)) touched_.push_back(seat.meeting);
}

Progress::Seat Progress::SeatOf(const Trace& trace, int32_t group, Kind kind) {
  std::vector<Seats>& of_rank = At(groups_, trace.rank);
  if (of_rank.size() < trace.groups.size()) of_rank.resize(trace.groups.size());
  Seat& seat = At(of_rank, group)[kind];
  if (seat.meeting < 0) {
    const GroupInfo& info = At(trace.groups, group);
    const auto me = std::find(info.world_ranks.begin(), info.world_ranks.end(), trace.rank);
    seat.meeting = MeetingOf(std::to_string(kind) + info.comm, info.world_ranks);
    seat.place = static_cast<int32_t>(me - info.world_ranks.begin());
  }
  return seat;
}

// Of two: the sender's place is 0.
void Progress::Message(const Trace& trace, const Event& event) {
  const GroupInfo& info = At(trace.groups, event.group);
  const int32_t peer = At(info.world_ranks, event.peer);
  const bool sends = event.collective == SPF_SEND;
  const int32_t from = sends ? trace.rank : peer, to = sends ? peer : trace.rank;
  const int32_t communicator = SeatOf(trace, event.group, kCollectives).meeting;
  const auto [at, fresh] = messages_.try_emplace({communicator, {from, to}}, -1);
  if (fresh)
    at->second = MeetingOf("m" + std::to_string(from) + " " + std::to_string(to) + " " + info.comm,
                           {from, to});
  Count({at->second, sends ? 0 : 1});
}

void Progress::See(const Trace& trace, const Event& event) {
  switch (event.kind) {
    case EventKind::kGroupCreate:
      return Count(SeatOf(trace, event.parent, kCreates));
    case EventKind::kGroupDestroy:
      return Count(SeatOf(trace, event.group, kDestroys));
    case EventKind::kGroupRegister:
      return Count(SeatOf(trace, event.group, kRegisters));
    case EventKind::kCollective:
      if (event.collective != SPF_SEND && event.collective != SPF_RECV)
        return Count(SeatOf(trace, event.group, kCollectives));
      if (event.peer >= 0) Message(trace, event);
      return;
    default:
      return;
  }
}

void Progress::Cut() {
  for (const int32_t meeting : touched_) At(meetings_, meeting).touched = false;
  touched_.clear();
}

int32_t Progress::Behind() const {
  for (const int32_t meeting : touched_) {
    const Meeting& of = At(meetings_, meeting);
    const auto [least, most] = std::minmax_element(of.counts.begin(), of.counts.end());
    if (*least != *most) return At(of.ranks, least - of.counts.begin());
  }
  return -1;
}

}  // namespace shardproof::parts
