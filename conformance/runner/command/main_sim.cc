// shardproof of the archive: the command without MPI. For --fabric mpi it becomes shardproof_mpi,
// which lies beside it, so that all else runs where MPI is not installed.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "conformance/runner/command/command_line.h"

namespace shardproof {

static int BecomeMpi(const Options&, int, char** argv) {
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "shardproof_mpi";
  execv(program.c_str(), argv);
  throw std::invalid_argument("--fabric mpi needs " + program + ": " + std::strerror(errno));
}

}  // namespace shardproof

int main(int argc, char** argv) {
  return shardproof::Main(argc, argv, {shardproof::BecomeMpi, nullptr, {}});
}
