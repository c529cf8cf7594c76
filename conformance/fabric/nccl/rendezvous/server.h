// server.h: who keeps the table that all processes of a job share? A thread of rank 0's process.
//
// Every process of the job holds a connection for as long as it lives. One that closes without a
// good-bye is a lost process, and all ranks learn it with their next question.
#pragma once
#include <memory>
#include <string>

namespace shardproof {

// Serves until it is destroyed; then waits, at most the patience, for the ranks that have not said
// good-bye.
class Server {
 public:
  // only_local: reached from this host alone. port 0: any. Throws std::runtime_error if it cannot
  // listen there.
  Server(bool only_local, int port, const std::string& job, int size, double patience_seconds);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  int port() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace shardproof
