// store.h: how do the processes of a job meet, and what do they share then?
//
// A table of keys and bytes, served by rank 0 over TCP (server.h). A launcher says where rank 0 is
// (environment.h), or MPI carries its address around (meet_over_mpi.h); ranks that are forked from
// one process reach a table of that process alone (Local).
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "conformance/fabric/nccl/rendezvous/server.h"

namespace shardproof {

struct Meeting {
  std::vector<std::string> hosts;  // where rank 0 is: names or addresses, tried in this order
  int port = 0;
  std::string job = "job";  // processes of another job are turned away
  int rank = 0, size = 1;
  double patience_seconds = 60;  // for the others to come, and for an answer
};

// Names of the loopback device.
bool IsLocalHost(const std::string& host);

// Rests between two looks: short at first, at most a millisecond.
void RestBeforeLook(int round);

// One process's end of the table. Any thread may call. Nothing but Meet, Local and ForChild throws
// or waits for anybody: what goes wrong is what Broken says from then on.
class Store {
 public:
  // Waits until all ranks are there. Throws std::runtime_error: cannot listen or connect, another
  // process with this rank, another number of ranks, somebody who does not come;
  // std::invalid_argument for a rank or port out of range. Rank 0 starts the server, unless it has
  // been given one.
  static std::unique_ptr<Store> Meet(const Meeting& meeting,
                                     std::unique_ptr<Server> server = nullptr);
  // A job of this process alone; its forked children share the table.
  static std::unique_ptr<Store> Local();
  // Says good-bye. In a forked copy: nothing. While an exception is under way: as if the process
  // had died, so that nobody waits for it.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  int rank() const { return meeting_.rank; }  // of the job
  int size() const { return meeting_.size; }
  // A key is written once: of several values the first stays.
  void Put(const std::string& key, const std::string& bytes);
  std::optional<std::string> Look(const std::string& key);
  // Removes all keys that begin with prefix. Nobody may still need them.
  void Forget(const std::string& prefix);
  // Why no more can come of the table, a lost process for example; nothing: it works.
  std::optional<std::string> Broken();
  // A forked child's own end, for the same rank; made in the child, whose copy of this end is not
  // to be used. Throws std::runtime_error where there can be none.
  std::unique_ptr<Store> ForChild();

 private:
  struct Reply {
    bool started = false;
    std::optional<std::string> value;
  };
  Store(const Meeting& meeting, std::unique_ptr<Server> server);
  void Connect(const char* role);
  Reply Ask(const std::vector<std::string>& question);

  Meeting meeting_;
  std::unique_ptr<Server> server_;
  std::mutex mutex_;
  int socket_ = -1;
  int process_;  // that made it
  bool is_child_ = false;
  std::string broken_;
};

}  // namespace shardproof
