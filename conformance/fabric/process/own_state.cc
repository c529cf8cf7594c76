#include "conformance/fabric/process/own_state.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstring>

namespace shardproof {
namespace {

struct LimitRow {
  __rlimit_resource which;
  const char* name;
};
constexpr std::array<LimitRow, 9> kLimitRows{{{RLIMIT_CPU, "RLIMIT_CPU"},
                                              {RLIMIT_FSIZE, "RLIMIT_FSIZE"},
                                              {RLIMIT_DATA, "RLIMIT_DATA"},
                                              {RLIMIT_STACK, "RLIMIT_STACK"},
                                              {RLIMIT_NOFILE, "RLIMIT_NOFILE"},
                                              {RLIMIT_AS, "RLIMIT_AS"},
                                              {RLIMIT_NPROC, "RLIMIT_NPROC"},
                                              {RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK"},
                                              {RLIMIT_CORE, "RLIMIT_CORE"}}};

// The signals whose handlers say where a crash was (process.h). Others belong to run times: Python
// takes SIGINT, profilers take SIGPROF.
constexpr std::array<int, 5> kCrashSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

std::string LimitText(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit);
}

constexpr std::array<const char*, 3> kFileNames{"standard input", "standard output",
                                                "standard error"};

// Of a file that is closed: nothing.
std::pair<dev_t, ino_t> FileAt(int file) {
  struct stat about {};
  if (fstat(file, &about) != 0) return {};
  return {about.st_dev, about.st_ino};
}

std::string Folder() {
  char path[PATH_MAX];
  return getcwd(path, sizeof path) != nullptr ? path : "a folder that is gone";
}

}  // namespace

OwnState::OwnState() : folder_(Folder()) {
  static_assert(kLimits == kLimitRows.size() && kSignals == kCrashSignals.size());
  for (size_t i = 0; i < files_.size(); ++i) files_[i] = FileAt(static_cast<int>(i));
  for (size_t i = 0; i < kLimits; ++i) {
    rlimit limit{};
    getrlimit(kLimitRows[i].which, &limit);
    limits_[i] = limit.rlim_cur;
  }
  for (size_t i = 0; i < kSignals; ++i) {
    struct sigaction action {};
    sigaction(kCrashSignals[i], nullptr, &action);
    handlers_[i] = action.sa_handler;
  }
}

std::string OwnState::ChangedNow() const {
  const OwnState now;
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  for (size_t i = 0; i < kLimits; ++i) {
    if (limits_[i] == now.limits_[i]) continue;
    add(std::string("the limit ") + kLimitRows[i].name + " is " + LimitText(now.limits_[i]) +
        ", it was " + LimitText(limits_[i]));
  }
  for (size_t i = 0; i < kSignals; ++i) {
    if (handlers_[i] == now.handlers_[i]) continue;
    const char* name = sigabbrev_np(kCrashSignals[i]);
    add(std::string("SIG") + (name != nullptr ? name : "?") + " has another handler");
  }
  for (size_t i = 0; i < files_.size(); ++i) {
    if (files_[i] == now.files_[i]) continue;
    const bool closed = now.files_[i] == std::pair<dev_t, ino_t>();
    add(std::string(kFileNames[i]) + (closed ? " is closed" : " is another file"));
  }
  if (folder_ != now.folder_) add("the working folder is " + now.folder_ + ", it was " + folder_);
  return text;
}

}  // namespace shardproof
