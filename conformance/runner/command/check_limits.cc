#include "conformance/runner/command/check_limits.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace shardproof {

namespace {

// Async-signal-safe.
void OutOfTime(int) {
  constexpr std::string_view kSaid =
      "shardproof: check took more processor time than --limit-seconds allows; nothing is judged\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kSaid.data(), kSaid.size());
  _exit(3);
}

// Never above what the process is limited to already.
void Limit(decltype(RLIMIT_AS) what, int64_t most, const char* option) {
  rlimit limit{};
  bool done = getrlimit(what, &limit) == 0;
  if (done) {
    limit.rlim_cur = std::min(static_cast<rlim_t>(most), limit.rlim_max);
    done = setrlimit(what, &limit) == 0;
  }
  if (!done)
    throw std::invalid_argument(std::string(option) + ": the system refuses (" +
                                std::strerror(errno) + ")");
}

}  // namespace

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

void LimitCheck(int64_t most_mib, int64_t most_seconds) {
  if (most_mib > 0) Limit(RLIMIT_AS, most_mib << 20, "--limit-memory");
  if (most_seconds > 0) {
    std::signal(SIGXCPU, OutOfTime);
    Limit(RLIMIT_CPU, most_seconds, "--limit-seconds");
  }
}

}  // namespace shardproof
