// own_state.h: does code leave the process in which it runs as it found it?
#pragma once
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <utility>

namespace shardproof {

// What the code that runs afterwards depends on: limits of resources, what signals of a crash do,
// the working folder.
class OwnState {
 public:
  OwnState();  // of now
  // "" or what is different now, in words: "the limit RLIMIT_CPU is 5, it was unlimited".
  std::string ChangedNow() const;

 private:
  static constexpr size_t kLimits = 9, kSignals = 5;
  std::array<rlim_t, kLimits> limits_{};
  std::array<void (*)(int), kSignals> handlers_{};
  std::string folder_;
  std::array<std::pair<dev_t, ino_t>, 3> files_{};  // standard input, output, error
};

}  // namespace shardproof
