#include "trace_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace shardproof::device {
namespace {

constexpr size_t kStep = size_t{4} << 20;  // bytes by which the file grows at least

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error("shardproof: " + what + ": " + std::strerror(errno));
}

}  // namespace

void TraceFile::Open(const std::string& path) {
  if (is_open()) throw std::runtime_error("shardproof: a trace is open already, asked for " + path);
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) Fail("cannot write the trace " + path);
  written_ = mapped_ = 0;
  window_ = nullptr;
}

void TraceFile::Grow(size_t need) {
  const size_t size = std::max(mapped_ * 2, (need + kStep - 1) / kStep * kStep);
  // Blocks are reserved, so that a full disk is an error here and no bus error later.
  const int error = posix_fallocate(descriptor_, 0, static_cast<off_t>(size));
  if (error != 0) {
    errno = error;
    Fail("no room for " + std::to_string(size) + " bytes of trace");
  }
  void* fresh = window_ == nullptr
                    ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0)
                    : mremap(window_, mapped_, size, MREMAP_MAYMOVE);
  if (fresh == MAP_FAILED) Fail("cannot map the trace");
  window_ = static_cast<char*>(fresh);
  mapped_ = size;
}

void TraceFile::Line(std::string_view text) {
  if (!is_open()) return;
  if (written_ + text.size() + 1 > mapped_) Grow(written_ + text.size() + 1);
  std::memcpy(window_ + written_, text.data(), text.size());
  // The line's end comes last: a line that is not whole has none.
  window_[written_ + text.size()] = '\n';
  written_ += text.size() + 1;
}

void TraceFile::Close() {
  if (!is_open()) return;
  if (window_ != nullptr) munmap(window_, mapped_);
  if (ftruncate(descriptor_, static_cast<off_t>(written_)) != 0) Fail("cannot end the trace");
  Abandon();
}

void TraceFile::Abandon() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
  window_ = nullptr;
}

}  // namespace shardproof::device
