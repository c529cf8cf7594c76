#include "conformance/common/frame.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace shardproof {
namespace {

void AddSize(std::string* to, uint64_t size) {
  to->append(reinterpret_cast<const char*>(&size), sizeof size);
}

uint64_t SizeAt(const std::string& text, uint64_t at) {
  uint64_t size = 0;
  std::memcpy(&size, text.data() + at, sizeof size);
  return size;
}

}  // namespace

std::string PackFrame(const Frame& fields) {
  uint64_t total = 0;
  for (const std::string& field : fields) total += sizeof(uint64_t) + field.size();
  std::string bytes;
  bytes.reserve(sizeof total + total);
  AddSize(&bytes, total);
  for (const std::string& field : fields) {
    AddSize(&bytes, field.size());
    bytes += field;
  }
  return bytes;
}

std::optional<Frame> TakeFrame(std::string* received, bool* bad) {
  if (received->size() < sizeof(uint64_t)) return std::nullopt;
  const uint64_t total = SizeAt(*received, 0);
  if (total > kMostFrameBytes) *bad = true;
  if (*bad || received->size() - sizeof total < total) return std::nullopt;
  Frame fields;
  const uint64_t end = sizeof total + total;
  for (uint64_t at = sizeof total; at < end;) {
    const uint64_t size = end - at < sizeof(uint64_t) ? total : SizeAt(*received, at);
    at += sizeof size;
    if (at > end || size > end - at) {
      *bad = true;
      return std::nullopt;
    }
    fields.push_back(received->substr(at, size));
    at += size;
  }
  received->erase(0, end);
  return fields;
}

bool SendAll(int socket, const std::string& bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = send(socket, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

std::optional<Frame> ReceiveFrame(int socket) {
  std::string in;
  bool bad = false;
  char chunk[1 << 16];
  while (!bad) {
    if (std::optional<Frame> frame = TakeFrame(&in, &bad)) return frame;
    const ssize_t n = recv(socket, chunk, sizeof chunk, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    in.append(chunk, static_cast<size_t>(n));
  }
  return std::nullopt;
}

}  // namespace shardproof
