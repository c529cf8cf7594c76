// mapped_file.h: how is a large file read without holding it in memory?
#pragma once
#include <cstddef>
#include <filesystem>
#include <string_view>

namespace shardproof {

// The bytes of a file, as pages of the system's cache. Who shortens the file meanwhile ends the
// process (SIGBUS): it is for files that nobody writes any more.
class MappedFile {
 public:
  // Throws std::system_error: no such file, no regular file, no room for its addresses.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(begin_), size_}; }
  // The first `bytes` are not read again: they no longer count as memory of the process. Called for
  // each row, it acts once in 4 MiB.
  void Done(size_t bytes) {
    constexpr size_t kStride = size_t{4} << 20;
    if (bytes >= done_ + kStride) GiveBack(bytes);
  }

 private:
  void GiveBack(size_t bytes);

  void* begin_ = nullptr;
  size_t size_ = 0, done_ = 0;
};

}  // namespace shardproof
