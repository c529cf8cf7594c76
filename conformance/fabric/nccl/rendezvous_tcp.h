// rendezvous_tcp.h: how do processes meet over TCP?
//
// Rank 0 serves the table from a thread; every rank, itself included, holds a connection to it for
// as long as it lives. A connection that closes without a good-bye is a lost process, and all ranks
// learn it with their next question.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "conformance/fabric/nccl/rendezvous_store.h"

namespace shardproof {

struct TcpMeeting {
  std::vector<std::string> hosts;  // where rank 0 is: names or addresses, tried in this order
  int port = 0;
  std::string job = "job";  // processes of another job are turned away
  int rank = 0, size = 1;
  double patience_seconds = 60;  // for the others to come, and for an answer
};

// Serves until it is destroyed; then waits, at most the patience, for the ranks that have not said
// good-bye.
class TcpServer {
 public:
  // only_local: reached from this host alone. port 0: any. Throws std::runtime_error if it cannot
  // listen there.
  TcpServer(bool only_local, int port, const std::string& job, int size, double patience_seconds);
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;
  int port() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

// Names of the loopback device and addresses of this host, under which other hosts may reach it:
// IPv4 before IPv6.
bool IsLocalHost(const std::string& host);
std::vector<std::string> AddressesOfThisHost();

class TcpStore : public Store {
 public:
  // Waits until all ranks are there. Throws std::runtime_error: cannot listen or connect, another
  // process with this rank, another number of ranks, somebody who does not come;
  // std::invalid_argument for a rank or port out of range. Rank 0 starts the server, unless it has
  // been given one.
  static std::unique_ptr<TcpStore> Meet(const TcpMeeting& meeting,
                                        std::unique_ptr<TcpServer> server = nullptr);
  // Says good-bye. In a forked copy: nothing. While an exception is under way: as if the process
  // had died, so that nobody waits for it.
  ~TcpStore() override;
  int rank() const override { return meeting_.rank; }
  int size() const override { return meeting_.size; }
  void Put(const std::string& key, const std::string& bytes) override;
  std::optional<std::string> Look(const std::string& key) override;
  void Forget(const std::string& prefix) override;
  std::optional<std::string> Broken() override;
  std::unique_ptr<Store> ForChild() override;

 private:
  struct Reply {
    bool started = false;
    std::optional<std::string> value;
  };
  TcpStore(const TcpMeeting& meeting, std::unique_ptr<TcpServer> server);
  void Connect(const char* role);
  Reply Ask(const std::vector<std::string>& question);

  TcpMeeting meeting_;
  std::unique_ptr<TcpServer> server_;
  std::mutex mutex_;
  int socket_ = -1;
  int process_;  // that made it
  bool is_child_ = false;
  std::string broken_;
};

}  // namespace shardproof
