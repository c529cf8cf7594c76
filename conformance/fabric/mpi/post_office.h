// post_office.h: how do bytes travel between supervisors without ever blocking inside MPI?
//
// All transfers are non-blocking operations that Pump tests in turn. Two communicators: engine
// traffic, and the side channel of the supervisors.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/fabric/mpi/control.h"

namespace shardproof::mpi {

// Engine traffic of one case: opaque messages between ranks. A message that belongs to a later case
// is kept for it.
class DataPost {
 public:
  // Where an arriving message goes: memory for bytes, or null when there is no room now.
  using Room = std::function<std::byte*(uint64_t bytes)>;
  using Arrived = std::function<void(std::byte* data, uint64_t bytes)>;
  using Sent = std::function<void(std::byte* data)>;  // data may be reused

  DataPost(MPI_Comm comm, int world)
      : comm_(comm), sent_(static_cast<size_t>(world)), received_(sent_.size()) {}
  // REQUIRES: idle(). Counts start again.
  void Begin(uint64_t epoch);
  void Send(int32_t to, std::byte* data, uint64_t bytes);
  bool Pump(const Room& room, const Arrived& arrived, const Sent& sent);  // true if anything moved

  const std::vector<uint64_t>& sent() const { return sent_; }  // by destination
  const std::vector<uint64_t>& received() const {
    return received_;
  }  // by source, complete and handed on
  bool idle() const { return sending_.empty() && receiving_.empty(); }

 private:
  struct Transfer {
    MPI_Request request = MPI_REQUEST_NULL;
    std::byte* data = nullptr;
    uint64_t bytes = 0;
    int32_t peer = -1;
    bool early = false;  // of a later case
  };
  struct Early {
    int32_t source = -1;
    int tag = -1;  // of its case
    std::unique_ptr<std::byte[]> data;
    uint64_t bytes = 0;
    bool complete = false;
  };
  int Tag(uint64_t epoch) const { return static_cast<int>(epoch % 16384); }
  bool Probe(const Room& room);
  bool HandEarly(const Room& room, const Arrived& arrived);

  MPI_Comm comm_;
  uint64_t epoch_ = 0;
  std::vector<uint64_t> sent_, received_;
  std::list<Transfer> sending_, receiving_;
  std::list<Early> early_;               // for later cases
  std::deque<Early> due_;                // of this case, arrived before it
  MPI_Message held_ = MPI_MESSAGE_NULL;  // matched, but there was no room
  MPI_Status held_status_{};
};

class ControlPost {
 public:
  ControlPost(MPI_Comm comm, int rank) : comm_(comm), rank_(rank) {}
  void Send(int32_t to, ControlMessage message);  // to oneself too
  bool Pump();
  // The next message of this case. Older ones are dropped, later ones kept.
  std::optional<ControlMessage> Take(uint64_t epoch);
  bool idle() const { return transfers_.empty(); }

 private:
  struct Transfer {
    MPI_Request request = MPI_REQUEST_NULL;
    std::string bytes;
    bool incoming = false;
  };
  MPI_Comm comm_;
  int rank_;
  std::list<Transfer> transfers_;
  std::deque<ControlMessage> inbox_;
};

}  // namespace shardproof::mpi
