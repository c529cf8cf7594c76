#include "conformance/fabric/nccl/rendezvous_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace shardproof {
namespace {

std::string ErrorText() { return std::strerror(errno); }

uint64_t Hash(const std::string& text, uint64_t h) {
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return h;
}

// A file name for any key: all but letters, digits, "-" and "." as %XX. Long ones by hash; files
// carry their key.
std::string NameOf(const std::string& key) {
  std::string name;
  char text[40];
  for (const char c : key) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ||
        (c == '.' && !name.empty())) {
      name += c;
    } else {
      std::snprintf(text, sizeof text, "%%%02X", static_cast<unsigned>(static_cast<uint8_t>(c)));
      name += text;
    }
  }
  if (name.size() <= 200) return name;
  std::snprintf(text, sizeof text, "%%h%016llx%016llx",
                static_cast<unsigned long long>(Hash(key, 0xcbf29ce484222325u)),
                static_cast<unsigned long long>(Hash(key, 0x9E3779B97F4A7C15u)));
  return text;
}

// The whole file, or nothing if there is none (errno says why).
std::optional<std::string> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  char chunk[1 << 16];
  ssize_t n = 0;
  while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR)) {
    if (n > 0) text.append(chunk, static_cast<size_t>(n));
  }
  const int error = errno;
  close(fd);
  errno = error;
  if (n < 0) return std::nullopt;
  return text;
}

bool WriteFile(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    at += static_cast<size_t>(n);
  }
  const int error = errno;
  const bool closed = close(fd) == 0;
  errno = error;
  return at == text.size() && closed;
}

// key, value: a file says which key it is of.
std::string Packed(const std::string& key, const std::string& bytes) {
  return std::to_string(key.size()) + "\n" + key + bytes;
}

}  // namespace

void FileTable::Break(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (broken_.empty()) broken_ = why;
}

void FileTable::Put(const std::string& key, const std::string& bytes) {
  const std::string path = folder_ + "/" + NameOf(key);
  // Unique in this folder: address of a local variable for threads, process for the rest.
  const std::string draft = folder_ + "/%d" + std::to_string(rank_) + "-" +
                            std::to_string(getpid()) + "-" +
                            std::to_string(reinterpret_cast<uintptr_t>(&path));
  if (!WriteFile(draft, Packed(key, bytes))) {
    const std::string why = ErrorText();
    unlink(draft.c_str());
    return Break("cannot write " + path + ": " + why +
                 "; the folder must be writable for all ranks");
  }
  if (link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST) {  // no hard links here
    if (access(path.c_str(), F_OK) != 0 && rename(draft.c_str(), path.c_str()) != 0) {
      Break("cannot write " + path + ": " + ErrorText());
    }
  }
  unlink(draft.c_str());
}

std::optional<std::string> FileTable::Look(const std::string& key) {
  const std::optional<std::string> text = ReadFile(folder_ + "/" + NameOf(key));
  if (!text) {
    if (errno != ENOENT) Break("cannot read below " + folder_ + ": " + ErrorText());
    return std::nullopt;
  }
  const std::string head = Packed(key, "");
  if (!text->starts_with(head)) return std::nullopt;  // another key with this hash
  return text->substr(head.size());
}

void FileTable::Forget(const std::string& prefix) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("%d")) continue;
    bool mine = name.starts_with(NameOf(prefix));
    if (name.starts_with("%h")) {
      const std::optional<std::string> text = ReadFile(entry.path().string());
      const size_t line = text ? text->find('\n') : std::string::npos;
      mine = line != std::string::npos && text->compare(line + 1, prefix.size(), prefix) == 0;
    }
    if (mine) unlink(entry.path().c_str());
  }
}

std::optional<std::string> FileTable::Broken() {
  const std::lock_guard lock(mutex_);
  if (broken_.empty()) return std::nullopt;
  return broken_;
}

}  // namespace shardproof
