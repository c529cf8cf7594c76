// Where do the lines of a trace go? Into a file that is mapped, so that a rank that is killed
// leaves every whole line that it wrote: its supervisor cuts off the zeros and adds the footer
// (supervise.py).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardproof::device {

class TraceFile {
 public:
  // Throws std::runtime_error with the path and the system's reason.
  void Open(const std::string& path);
  bool is_open() const { return descriptor_ >= 0; }
  void Line(std::string_view text);
  // Cuts the file to what was written.
  void Close();
  // In a forked child: forgets the file, without touching what the parent writes.
  void Abandon();

 private:
  void Grow(size_t need);

  int descriptor_ = -1;
  char* window_ = nullptr;
  size_t written_ = 0;
  size_t mapped_ = 0;
};

}  // namespace shardproof::device
