#include "conformance/fabric/mpi/leave.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace shardproof::mpi {
namespace {

// Lines of PMI-1, "cmd=barrier_in\n". False: the process manager is gone.
bool Say(int fd, std::string_view line) {
  while (!line.empty()) {
    const ssize_t n = write(fd, line.data(), line.size());
    if (n <= 0) return false;
    line.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool Hear(int fd, std::string_view command) {
  std::string line;
  char letter = 0;
  while (read(fd, &letter, 1) == 1) {
    if (letter != '\n') {
      line += letter;
    } else if (line.starts_with(command)) {
      return true;
    } else {
      line.clear();
    }
  }
  return false;
}

}  // namespace

bool NamesSharedMemory(const std::string& transports) {
  std::istringstream list(transports);
  for (std::string name; std::getline(list, name, ',');) {
    for (const char* shared : {"all", "sm", "shm", "mm", "posix", "sysv", "xpmem", "cma", "knem"}) {
      if (name == shared) return true;
    }
  }
  return false;
}

bool FinaliseMayHang(const std::string& library_version) {
  const char* transports = std::getenv("UCX_TLS");
  return transports != nullptr && !NamesSharedMemory(transports) &&
         std::getenv("PMI_FD") != nullptr && library_version.find("MPICH") != std::string::npos &&
         library_version.find("ch4:ucx") != std::string::npos;
}

void LeaveWithoutFinalise(int code) {
  std::fflush(nullptr);
  const int fd = std::atoi(std::getenv("PMI_FD"));
  // Nobody may end while another one still reads from it.
  const bool met = Say(fd, "cmd=barrier_in\n") && Hear(fd, "cmd=barrier_out") &&
                   Say(fd, "cmd=finalize\n") && Hear(fd, "cmd=finalize_ack");
  _exit(met ? code : 2);
}

void AwaitReader(int fd, std::chrono::milliseconds at_most) {
  struct stat file {};
  if (fstat(fd, &file) != 0 || !S_ISFIFO(file.st_mode)) return;
  const auto limit = std::chrono::steady_clock::now() + at_most;
  int unread = 0;
  while (ioctl(fd, FIONREAD, &unread) == 0 && unread > 0 &&
         std::chrono::steady_clock::now() < limit) {
    pollfd writer{fd, 0, 0};
    if (poll(&writer, 1, 1) > 0 && (writer.revents & POLLERR) != 0) return;
  }
}

}  // namespace shardproof::mpi
