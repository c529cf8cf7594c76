// printed_file.h: what does foreign code print?
//
// Standard output and error of its process become a file in memory, which has room for so much and
// refuses the rest.
#pragma once
#include <cstddef>
#include <string>

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
  void TakeOutput() const;
  // When that process has ended.
  std::string All() const;

 private:
  int file_;
};

// Of a rank, the beginning and the end: at most kMostPrinted bytes, and how many were left out.
inline constexpr size_t kMostPrinted = 16'000;
std::string ClippedPrint(const std::string& text);

}  // namespace shardproof
