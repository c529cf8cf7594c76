// safe_stream.h: how does a stream show only what is safe, whoever writes to it?
#pragma once
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace shardproof {

// Between a stream and where its bytes go: VisibleText of all that is written. A character that
// has come in part is held until the rest comes, or the end.
class SafeBuffer : public std::streambuf {
 public:
  explicit SafeBuffer(std::streambuf* to) : to_(to) {}
  ~SafeBuffer() override { Finish(); }
  // Our own bytes, which a terminal is to obey.
  void Raw(std::string_view text);

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  void Put(std::string_view text);
  void Finish();
  std::streambuf* to_;
  std::string part_;  // the beginning of a character, less than 4 bytes
};

// While it lives, the stream is safe.
class SafeStream {
 public:
  explicit SafeStream(std::ostream& stream)
      : stream_(stream), before_(stream.rdbuf()), buffer_(before_) {
    stream_.rdbuf(&buffer_);
  }
  ~SafeStream() { stream_.rdbuf(before_); }
  SafeStream(const SafeStream&) = delete;
  SafeStream& operator=(const SafeStream&) = delete;

 private:
  std::ostream& stream_;
  std::streambuf* before_;
  SafeBuffer buffer_;
};

// out << TerminalCode{"\r"}: what passes a SafeBuffer.
struct TerminalCode {
  std::string_view text;
};
std::ostream& operator<<(std::ostream& out, TerminalCode code);

}  // namespace shardproof
