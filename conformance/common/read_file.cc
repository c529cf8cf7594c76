#include "conformance/common/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace shardproof {

std::optional<std::string> ReadFile(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct stat facts {};
  const size_t expected =
      fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) ? static_cast<size_t>(facts.st_size) : 0;
  std::string text;
  ssize_t got = 1;
  for (size_t used = 0; got != 0;) {
    text.resize(used < expected ? expected + 1 : used + 65'536);
    got = read(file, text.data() + used, text.size() - used);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) used += static_cast<size_t>(got);
    if (got == 0) text.resize(used);
  }
  const int error = errno;
  close(file);
  errno = error;
  if (got < 0) return std::nullopt;
  return text;
}

}  // namespace shardproof
