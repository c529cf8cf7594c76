#include "conformance/common/safe_stream.h"

#include <algorithm>
#include <utility>

#include "conformance/common/safe_text.h"

namespace shardproof {
namespace {

// Bytes at the end of text that may begin a character whose rest is still to come.
size_t PartAtEnd(std::string_view text) {
  for (size_t n = std::min<size_t>(3, text.size()); n > 0; --n) {
    const auto lead = static_cast<unsigned char>(text[text.size() - n]);
    const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 1;
    if (length > n) return n;
  }
  return 0;
}

}  // namespace

void SafeBuffer::Put(std::string_view text) {
  if (to_ == nullptr || text.empty()) return;
  const std::string safe = VisibleText(text);
  to_->sputn(safe.data(), static_cast<std::streamsize>(safe.size()));
}

void SafeBuffer::Finish() { Put(std::exchange(part_, {})); }

void SafeBuffer::Raw(std::string_view text) {
  Finish();
  if (auto* safe = dynamic_cast<SafeBuffer*>(to_)) return safe->Raw(text);
  if (to_ != nullptr) to_->sputn(text.data(), static_cast<std::streamsize>(text.size()));
}

SafeBuffer::int_type SafeBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  xsputn(&one, 1);
  return c;
}

std::streamsize SafeBuffer::xsputn(const char* text, std::streamsize size) {
  const std::string all = std::exchange(part_, {}) + std::string(text, static_cast<size_t>(size));
  part_ = all.substr(all.size() - PartAtEnd(all));
  Put(std::string_view(all).substr(0, all.size() - part_.size()));
  return size;
}

int SafeBuffer::sync() { return to_ == nullptr ? 0 : to_->pubsync(); }

std::ostream& operator<<(std::ostream& out, TerminalCode code) {
  if (auto* safe = dynamic_cast<SafeBuffer*>(out.rdbuf())) {
    safe->Raw(code.text);
    return out;
  }
  return out << code.text;
}

}  // namespace shardproof
