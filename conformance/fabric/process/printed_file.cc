#include "conformance/fabric/process/printed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace shardproof {

PrintedFile::PrintedFile() : file_(memfd_create("printed", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  const bool made = file_ >= 0 && ftruncate(file_, static_cast<off_t>(kRoom)) == 0 &&
                    fcntl(file_, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0;
  if (made) return;
  const int error = errno;
  if (file_ >= 0) close(file_);
  throw std::runtime_error(std::string("cannot make a file in memory for what is printed: ") +
                           std::strerror(error));
}

PrintedFile::~PrintedFile() { close(file_); }

void PrintedFile::TakeOutput() const {
  std::fflush(nullptr);
  dup2(file_, STDOUT_FILENO);
  dup2(file_, STDERR_FILENO);
  close(file_);
  setvbuf(stdout, nullptr, _IOLBF, 0);
}

std::string PrintedFile::All() const {
  const off_t end = lseek(file_, 0, SEEK_CUR);  // shared with who printed
  if (end <= 0) return "";
  std::string all(std::min(static_cast<size_t>(end), kRoom), '\0');
  const ssize_t n = pread(file_, all.data(), all.size(), 0);
  all.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return all;
}

std::string ClippedPrint(const std::string& text) {
  if (text.size() <= kMostPrinted) return text;
  const size_t half = kMostPrinted / 2;
  return text.substr(0, half) + "\n... " + std::to_string(text.size() - 2 * half) +
         " bytes left out ...\n" + text.substr(text.size() - half);
}

}  // namespace shardproof
