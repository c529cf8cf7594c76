#include "conformance/common/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace shardproof {

bool ReadFileInto(const std::filesystem::path& path, std::string& text) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat facts {};
  const size_t expected =
      fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) ? static_cast<size_t>(facts.st_size) : 0;
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
  return got == 0;
}

std::optional<std::string> ReadFile(const std::filesystem::path& path) {
  std::string text;
  if (!ReadFileInto(path, text)) return std::nullopt;
  return text;
}

}  // namespace shardproof
