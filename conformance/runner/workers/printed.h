// printed.h: what does foreign code print, and while whose code runs?
//
// Standard output and error of its process become a file in memory, which has room for so much and
// refuses the rest. Whoever makes a rank's code run notes how far the file has come (Progress).
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "conformance/host/progress.h"

namespace shardproof {

class PrintedFile {
 public:
  static constexpr size_t kRoom = size_t{1} << 20;

  PrintedFile();  // throws std::runtime_error
  ~PrintedFile();
  PrintedFile(const PrintedFile&) = delete;
  PrintedFile& operator=(const PrintedFile&) = delete;

  int file() const { return file_; }
  // In the process that runs foreign code: what is printed from here on goes into the file.
  void TakeOutput(Progress& progress) const;
  // When that process has ended: by rank; -1: while no rank's code ran. Of each the beginning and
  // the end, at most so many bytes.
  std::map<int32_t, std::string> Read(const Progress& progress, size_t most) const;

 private:
  int file_;
};

}  // namespace shardproof
