#include "conformance/fabric/process/process_time.h"

#include <time.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace shardproof {

ProcessTime ProcessTimeOf(pid_t process) {
  ProcessTime time;
  clockid_t clock{};
  timespec ran{};
  if (clock_getcpuclockid(process, &clock) == 0 && clock_gettime(clock, &ran) == 0)
    time.ran = static_cast<double>(ran.tv_sec) + 1e-9 * static_cast<double>(ran.tv_nsec);
  std::error_code gone;
  const std::filesystem::directory_iterator threads("/proc/" + std::to_string(process) + "/task",
                                                    gone);
  if (gone) return time;
  for (auto thread = begin(threads); thread != end(threads); thread.increment(gone)) {
    uint64_t on_core = 0, queued = 0;  // ns
    std::ifstream(thread->path() / "schedstat") >> on_core >> queued;
    time.queued += 1e-9 * static_cast<double>(queued);
    if (gone) break;
  }
  return time;
}

// Threads that end take their numbers with them: a difference may be negative.
double Span::Free() const {
  const double kept = ProcessTimeOf(process_).queued - at_began_.queued;
  return Seconds() - std::max(0.0, kept);
}

}  // namespace shardproof
