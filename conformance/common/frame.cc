#include "conformance/common/frame.h"

#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

namespace shardproof {
namespace {

char* PutSize(char* to, uint64_t size) {
  std::memcpy(to, &size, sizeof size);
  return to + sizeof size;
}

uint64_t SizeAt(std::string_view text, uint64_t at) {
  uint64_t size = 0;
  std::memcpy(&size, text.data() + at, sizeof size);
  return size;
}

}  // namespace

uint64_t BytesOf(const Frame& fields) {
  uint64_t total = sizeof(uint64_t);
  for (const std::string& field : fields) total += sizeof(uint64_t) + field.size();
  return total;
}

void PackFrameTo(const Frame& fields, char* bytes) {
  char* to = PutSize(bytes, BytesOf(fields) - sizeof(uint64_t));
  for (const std::string& field : fields) {
    to = PutSize(to, field.size());
    std::memcpy(to, field.data(), field.size());
    to += field.size();
  }
}

std::string PackFrame(const Frame& fields) {
  std::string bytes(BytesOf(fields), '\0');
  PackFrameTo(fields, bytes.data());
  return bytes;
}

std::optional<Frame> TakeFrame(std::string* received, bool* bad) {
  std::string_view rest = *received;
  const std::optional<FrameView> views = FrameIn(&rest, bad);
  if (!views) return std::nullopt;
  Frame fields(views->begin(), views->end());
  received->erase(0, received->size() - rest.size());
  return fields;
}

std::optional<FrameView> FrameIn(std::string_view* bytes, bool* bad) {
  if (bytes->size() < sizeof(uint64_t)) return std::nullopt;
  const uint64_t total = SizeAt(*bytes, 0);
  if (total > kMostFrameBytes) *bad = true;
  if (*bad || bytes->size() - sizeof total < total) return std::nullopt;
  FrameView fields;
  const uint64_t end = sizeof total + total;
  for (uint64_t at = sizeof total; at < end;) {
    const uint64_t size = end - at < sizeof(uint64_t) ? total : SizeAt(*bytes, at);
    at += sizeof size;
    if (at > end || size > end - at) {
      *bad = true;
      return std::nullopt;
    }
    fields.push_back(bytes->substr(at, size));
    at += size;
  }
  bytes->remove_prefix(end);
  return fields;
}

int64_t NumberOf(std::string_view field, int64_t lowest, int64_t highest) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  if (error != std::errc() || end != field.data() + field.size() || number < lowest ||
      number > highest) {
    throw std::runtime_error("a field of a frame should be a number from " +
                             std::to_string(lowest) + " to " + std::to_string(highest) + ", not " +
                             std::to_string(field.size()) + " bytes of something else");
  }
  return number;
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
