#include "conformance/common/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace shardproof {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  int error = file < 0 || fstat(file, &facts) != 0 ? errno : 0;
  if (error == 0 && !S_ISREG(facts.st_mode)) error = S_ISDIR(facts.st_mode) ? EISDIR : EINVAL;
  if (error == 0 && facts.st_size > 0) {
    size_ = static_cast<size_t>(facts.st_size);
    begin_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    if (begin_ == MAP_FAILED) error = errno;
  }
  if (file >= 0) close(file);
  if (error != 0) throw std::system_error(error, std::generic_category(), path.string());
  if (size_ > 0) madvise(begin_, size_, MADV_SEQUENTIAL);
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(begin_, size_);
}

void MappedFile::GiveBack(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t whole = bytes / page * page;
  if (whole <= done_) return;
  madvise(static_cast<char*>(begin_) + done_, whole - done_, MADV_DONTNEED);
  done_ = whole;
}

}  // namespace shardproof
