// file_operations.h's FileOperation: what a call of another process is about.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "conformance/common/read_file.h"
#include "conformance/fabric/process/file_calls.h"
#include "conformance/fabric/process/file_operations.h"

namespace shardproof {
namespace {

constexpr size_t kMostText = 4096;
constexpr uint64_t kMostParts = 1024;      // of a write, as the system has it
constexpr uint64_t kMostBytes = 64 << 20;  // of a write that is made here

bool ReadFrom(pid_t pid, uint64_t address, void* to, size_t bytes) {
  const iovec here{to, bytes};
  const iovec there{reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

std::string LastName(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

// A text of the process, which may end where its memory does; empty: it cannot be read.
std::string TextAt(pid_t pid, uint64_t address) {
  constexpr uint64_t kPage = 4096;
  std::string text;
  while (text.size() < kMostText) {
    std::array<char, kPage> page;
    const size_t some = kPage - (address + text.size()) % kPage;
    if (!ReadFrom(pid, address + text.size(), page.data(), some)) break;
    const size_t length = strnlen(page.data(), some);
    text.append(page.data(), length);
    if (length < some) break;
  }
  return text;
}

std::string FileOf(pid_t pid, uint64_t file) {
  std::array<char, kMostText> path;
  const std::string link = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(file);
  const ssize_t n = readlink(link.c_str(), path.data(), path.size());
  return n <= 0 ? "" : std::string(path.data(), static_cast<size_t>(n));
}

// Where the next byte of the file would go; -1: unknown.
int64_t PositionOf(pid_t pid, uint64_t file) {
  const auto text = ReadFile("/proc/" + std::to_string(pid) + "/fdinfo/" + std::to_string(file));
  if (!text || text->rfind("pos:", 0) != 0) return -1;
  return std::atoll(text->c_str() + 4);
}

// What is to be written, up to kMostBytes.
std::vector<iovec> PartsOf(const FileOperation& operation, const FileCall& call) {
  if (!call.parts)
    return {{reinterpret_cast<void*>(operation.arguments[1]), operation.arguments[2]}};
  std::vector<iovec> parts(std::min(operation.arguments[2], kMostParts));
  if (!ReadFrom(operation.pid, operation.arguments[1], parts.data(), parts.size() * sizeof(iovec)))
    return {};
  return parts;
}

uint64_t BytesOf(const std::vector<iovec>& parts) {
  uint64_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

}  // namespace

bool FileOperation::OnDisk() const {
  const FileCall* const call = FileCallOf(number);
  if (call == nullptr || call->by_path) return true;
  const std::string file = FileOf(pid, arguments[call->what]);
  return file.empty() || (file.starts_with('/') && !file.starts_with("/dev/"));
}

bool FileOperation::Writes() const {
  const FileCall* const call = FileCallOf(number);
  return call != nullptr && call->kind == FileCall::Kind::kWrite;
}

std::string FileOperation::Text() const {
  const FileCall* const call = FileCallOf(number);
  if (call == nullptr) return "call " + std::to_string(number);
  std::string text = call->name;
  if (Writes()) text += " of " + std::to_string(BytesOf(PartsOf(*this, *call))) + " bytes to";
  const uint64_t what = arguments[call->what];
  const std::string name = LastName(call->by_path ? TextAt(pid, what) : FileOf(pid, what));
  return text + (Writes() ? " " : " of ") + (name.empty() ? "a file" : name);
}

void FileOperation::WriteHalf() const {
  const FileCall* const call = FileCallOf(number);
  if (call == nullptr || !Writes()) return;
  const std::vector<iovec> parts = PartsOf(*this, *call);
  const int64_t from = call->position >= 0 ? static_cast<int64_t>(arguments[call->position])
                                           : PositionOf(pid, arguments[0]);
  const uint64_t half = BytesOf(parts) / 2;
  if (half == 0 || half > kMostBytes || from < 0) return;
  std::string bytes;
  for (const iovec& part : parts) {
    std::string some(std::min<uint64_t>(part.iov_len, half - bytes.size()), '\0');
    if (!ReadFrom(pid, reinterpret_cast<uint64_t>(part.iov_base), some.data(), some.size())) return;
    bytes += some;
  }
  const std::string link = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(arguments[0]);
  const int file = open(link.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = pwrite(file, bytes.data() + written, bytes.size() - written,
                             from + static_cast<int64_t>(written));
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  close(file);
}

}  // namespace shardproof
