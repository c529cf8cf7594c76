#include "conformance/runner/workers/printed.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace shardproof {

namespace {

std::string Clipped(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  const size_t half = most / 2;
  return text.substr(0, half) + "\n... " + std::to_string(text.size() - 2 * half) +
         " bytes left out ...\n" + text.substr(text.size() - half);
}

}  // namespace

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

void PrintedFile::TakeOutput(Progress& progress) const {
  std::fflush(nullptr);
  dup2(file_, STDOUT_FILENO);
  dup2(file_, STDERR_FILENO);
  close(file_);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  progress.prints.store(true);
}

std::map<int32_t, std::string> PrintedFile::Read(const Progress& progress, size_t most) const {
  const off_t end = lseek(file_, 0, SEEK_CUR);  // shared with who printed
  if (end <= 0) return {};
  std::string all(std::min(static_cast<size_t>(end), kRoom), '\0');
  const ssize_t n = pread(file_, all.data(), all.size(), 0);
  all.resize(n > 0 ? static_cast<size_t>(n) : 0);
  std::map<int32_t, std::string> by_rank;
  size_t from = 0;
  const auto give = [&](int32_t rank, size_t to) {
    const size_t until = std::clamp(to, from, all.size());
    if (until > from) by_rank[rank] += all.substr(from, until - from);
    from = until;
  };
  const uint32_t stretches = std::min(progress.stretches.load(), Progress::kStretches);
  for (uint32_t i = 0; i < stretches; ++i) give(progress.stretch[i].rank, progress.stretch[i].end);
  give(progress.rank.load(), all.size());
  std::map<int32_t, std::string> kept;
  for (auto& [rank, text] : by_rank) {
    const bool known = rank >= 0 && rank < INT32_MAX;
    kept[known ? rank : -1] += text;
  }
  for (auto& [rank, text] : kept) text = Clipped(text, most);
  return kept;
}

}  // namespace shardproof
