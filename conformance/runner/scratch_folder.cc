#include "conformance/runner/scratch_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace shardproof {
namespace {

constexpr char kPrefix[] = "shardproof-scratch.";

void RemoveAll(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

int Open(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

// Of processes that are gone.
void RemoveOldOnes(const std::filesystem::path& below) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(below, error), end; !error && at != end;
       at.increment(error)) {
    const std::string path = at->path().string();
    if (!at->path().filename().string().starts_with(kPrefix)) continue;
    const int folder = Open(path);
    struct stat about {};
    const bool ours = folder >= 0 && fstat(folder, &about) == 0 && about.st_uid == geteuid();
    if (ours && flock(folder, LOCK_EX | LOCK_NB) == 0) RemoveAll(path);
    if (folder >= 0) close(folder);
  }
}

// The lock of a folder that is there; -1: another run has taken it for an old one.
int Lock(const std::string& path) {
  const int folder = Open(path);
  struct stat locked {
  }, named{};
  const bool ours = folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) == 0 &&
                    fstat(folder, &locked) == 0 && stat(path.c_str(), &named) == 0 &&
                    locked.st_ino == named.st_ino;
  if (ours) return folder;
  if (folder >= 0) close(folder);
  return -1;
}

// In a process of its own: waits for the end of the one that holds the lock. Engines that die at
// the same time may still write.
[[noreturn]] void Tidy(const std::string& path) {
  constexpr timespec kNap{0, 20'000'000};
  constexpr int kRounds = 25;
  setsid();
  prctl(PR_SET_NAME, "shardproof-tidy");
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  close_range(0, ~0u, 0);
  const int folder = Open(path);
  while (folder >= 0 && flock(folder, LOCK_EX) != 0 && errno == EINTR) {
  }
  for (int round = 0; folder >= 0 && round < kRounds; ++round) {
    RemoveAll(path);
    nanosleep(&kNap, nullptr);
  }
  _exit(0);
}

}  // namespace

ScratchFolder::ScratchFolder() {
  const std::filesystem::path below = std::filesystem::temp_directory_path();
  RemoveOldOnes(below);
  while (lock_ < 0) {
    path_ = (below / (std::string(kPrefix) + "XXXXXX")).string();
    if (mkdtemp(path_.data()) == nullptr)
      throw std::runtime_error("cannot make a folder " + path_ + ": " + std::strerror(errno));
    lock_ = Lock(path_);
  }
  tidier_ = fork();
  if (tidier_ == 0) Tidy(path_);
}

ScratchFolder::~ScratchFolder() {
  RemoveAll(path_);
  if (tidier_ > 0) {
    kill(tidier_, SIGKILL);
    while (waitpid(tidier_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close(lock_);
}

}  // namespace shardproof
