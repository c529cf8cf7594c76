// keeper.h: how does everything that foreign code has started end with it?
//
// Between the process that asks and the one that runs foreign code stands a small third one, the
// keeper:
//
//     asks ── keeper ── runs foreign code ── what that starts
//
// It adopts what loses its parent, also daemons, and ends all of it when the process below has
// ended, when it is told to, and when the one that asks is gone, however that ended. It never runs
// foreign code. If it is killed itself, the process below dies too.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace shardproof {

// How a kept process ended.
struct KeptEnd {
  bool known = false;  // false: the keeper was killed, so nobody knows
  int status = 0;      // as filled in by waitpid
  int left = 0;        // processes that it left behind, which were ended
  std::string left_name;
};

// "a process (sleep)", "3 processes (one is sleep)"
std::string LeftText(const KeptEnd& end);

class Keeper {
 public:
  Keeper() = default;
  ~Keeper() { Kill(); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Forks both. body runs in a process group of its own, and should end the process; if it returns,
  // the exit code is 1. What that process has of this one: memory, and the files 2 and `files`. Its
  // standard output is this one's standard error, so what an engine prints is no part of a report;
  // its input is empty. Throws std::runtime_error. REQUIRES: !running().
  void Start(const std::function<void()>& body, const std::vector<int>& files = {});

  bool running() const { return file_ >= 0; }
  pid_t pid() const { return pid_; }  // of the process that runs body
  int file() const { return file_; }  // readable when all is over; -1: it is
  // Whether all is over: the process and whatever it had started are gone. Does not wait.
  bool Ended();
  // Ends all of it, and waits for that.
  void Kill();
  // Waits for the end of all.
  void Await();
  const KeptEnd& end() const { return end_; }  // REQUIRES: !running()

 private:
  bool Take(int flags);
  void Close();

  int file_ = -1;
  pid_t keeper_ = -1, pid_ = -1;
  KeptEnd end_;
};

}  // namespace shardproof
