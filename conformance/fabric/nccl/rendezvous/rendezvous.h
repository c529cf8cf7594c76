// rendezvous.h: how do the ranks of a job exchange bytes before they have a communicator?
//
// A Rendezvous is one rank's end of a table that all ranks of one case share: NCCL ids, lists of
// members, "I am here". Each case has a table of its own (case_table.h), so that nothing of an
// earlier case is read. Tests have a table in the simulator (../standin_rendezvous.h).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardproof {

// Asked between two looks, by the thread that waits: true ends the wait. May rest, count, or look
// at a communicator's errors.
using GiveUp = std::function<bool()>;

// Nothing here throws; what goes wrong with the table itself is an abort with that reason. Any
// thread may call.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual int rank() const = 0;  // of the case, in [0, size())
  virtual int size() const = 0;

  // Does not wait for anybody. A key is written once: of several values the first stays.
  virtual void Put(const std::string& key, const std::string& bytes) = 0;
  // Waits until somebody has put it. Nothing: give_up said so, or Aborted() has a reason.
  virtual std::optional<std::string> Get(const std::string& key, const GiveUp& give_up) = 0;

  // Ends the case on all ranks: waits answer nothing, and Aborted() says why. The first reason
  // stays.
  virtual void Abort(const std::string& reason) = 0;
  // Also when a peer is lost: the process is gone, or its connection.
  virtual std::optional<std::string> Aborted() = 0;
};

// What each of members put under this key, in their order; this rank's own is `mine`. A key serves
// one exchange among these members. Nothing as in Get. REQUIRES: this rank is one of members, which
// are ranks of the case.
std::optional<std::vector<std::string>> AllGather(Rendezvous& rendezvous, const std::string& key,
                                                  const std::vector<int32_t>& members,
                                                  const std::string& mine, const GiveUp& give_up);

}  // namespace shardproof
