// progress.h: have all ranks come to the same place in what they do together?
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof::parts {

// Counts, for each communicator and member, its collectives, splits, destructions and
// registrations, and the messages from each member to each. Where all counts agree, no operation
// has one member's part before this place and another's behind it.
class Progress {
 public:
  explicit Progress(size_t ranks) : groups_(ranks) {}

  void See(const Trace& trace, const Event& event);
  // A rank that others are ahead of; -1: none.
  int32_t Behind() const;
  // The ranks of one communicator do not say the same of its members.
  bool disputed() const { return disputed_; }
  // REQUIRES: Behind() < 0.
  void Cut();

 private:
  enum Kind : uint8_t { kCollectives, kCreates, kDestroys, kRegisters, kKinds };
  // What some ranks take part in equally often.
  struct Meeting {
    std::vector<int32_t> ranks;
    std::vector<int64_t> counts;  // by place in ranks
    bool touched = false;
  };
  // A rank's place in a meeting.
  struct Seat {
    int32_t meeting = -1, place = -1;
  };
  using Seats = std::array<Seat, kKinds>;

  Seat SeatOf(const Trace& trace, int32_t group, Kind kind);
  void Message(const Trace& trace, const Event& event);
  int32_t MeetingOf(const std::string& key, const std::vector<int32_t>& ranks);
  void Count(Seat seat);

  std::vector<Meeting> meetings_;
  std::map<std::string, int32_t> by_key_;
  std::vector<std::vector<Seats>> groups_;  // by rank and group
  // By communicator, sender and receiver: the meeting.
  std::map<std::pair<int32_t, std::pair<int32_t, int32_t>>, int32_t> messages_;
  std::vector<int32_t> touched_;  // meetings, since the last cut
  bool disputed_ = false;
};

}  // namespace shardproof::parts
