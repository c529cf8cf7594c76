#include "conformance/common/safe_text.h"

#include <algorithm>
#include <cstdint>

namespace shardproof {
namespace {

unsigned char Byte(std::string_view text, size_t at) {
  return static_cast<unsigned char>(text[at]);
}

uint32_t CodePoint(std::string_view character) {
  constexpr uint32_t kLead[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t code = Byte(character, 0) & kLead[character.size()];
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (Byte(character, i) & 0x3F);
  return code;
}

struct Span {
  uint32_t first, last;
};
constexpr Span kHazards[] = {
    {0x00, 0x1F},       {0x7F, 0x9F},      // controls
    {0xAD, 0xAD},       {0x034F, 0x034F},  // soft hyphen, grapheme joiner
    {0x061C, 0x061C},   {0x180B, 0x180F},  // bidi; Mongolian selectors
    {0x200B, 0x200F},   {0x2028, 0x202E},  // zero width, marks, separators, bidi
    {0x2060, 0x206F},   {0xFDD0, 0xFDEF},  // invisible, bidi; noncharacters
    {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},  // selectors, byte order, interlinear
    {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},                    // musical formats, tags
};

void AppendHex(std::string* to, uint32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    *to += "0123456789abcdef"[value >> shift & 15];
}

// Each character of text, or a byte that begins none (valid is false).
template <typename Each>
void ForEachCharacter(std::string_view text, Each each) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    each(text.substr(0, std::max<size_t>(1, length)), length > 0);
    text.remove_prefix(std::max<size_t>(1, length));
  }
}

void AppendVisible(std::string* to, std::string_view character, bool valid) {
  if (valid && !IsHazard(character)) {
    *to += character;
  } else if (character == "\t") {
    *to += ' ';
  } else if (character.size() == 1) {
    *to += "\\x";
    AppendHex(to, Byte(character, 0), 2);
  } else {
    const uint32_t code = CodePoint(character);
    *to += code > 0xFFFF ? "\\U" : "\\u";
    AppendHex(to, code, code > 0xFFFF ? 8 : 4);
  }
}

std::string Visible(std::string_view text, std::string_view newline) {
  std::string out;
  out.reserve(text.size());
  ForEachCharacter(text, [&](std::string_view character, bool valid) {
    if (character == "\n") {
      out += newline;
    } else {
      AppendVisible(&out, character, valid);
    }
  });
  return out;
}

}  // namespace

size_t Utf8Length(std::string_view text) {
  const unsigned char lead = Byte(text, 0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((Byte(text, i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = Byte(text, 1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool too_high = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_high ? 0 : length;
}

bool IsHazard(std::string_view character) {
  const uint32_t code = CodePoint(character);
  if ((code & 0xFFFE) == 0xFFFE) return true;  // the last two of each plane are noncharacters
  return std::any_of(std::begin(kHazards), std::end(kHazards),
                     [code](const Span& span) { return span.first <= code && code <= span.last; });
}

std::string JsonEscape(std::string_view character) {
  const uint32_t code = CodePoint(character);
  std::string out = "\\u";
  if (code > 0xFFFF) {
    AppendHex(&out, 0xD800 + ((code - 0x10000) >> 10), 4);
    out += "\\u";
    AppendHex(&out, 0xDC00 + ((code - 0x10000) & 0x3FF), 4);
  } else {
    AppendHex(&out, code, 4);
  }
  return out;
}

std::string VisibleText(std::string_view text) { return Visible(text, "\n"); }
std::string VisibleLine(std::string_view text) { return Visible(text, "\\n"); }

std::string IndentedText(std::string_view text, size_t blanks) {
  return Visible(text, "\n" + std::string(blanks, ' '));
}

std::string XmlText(std::string_view text) {
  std::string out;
  for (const char c : VisibleText(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string MarkdownLine(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_{}[]<>#|~&!@";
  std::string out;
  for (const char c : VisibleLine(text)) {
    if (kMarkup.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  // At the beginning of a line some more characters are markup: lists, rules, code by indentation.
  const size_t begin = std::min(out.find_first_not_of(' '), out.size());
  const size_t mark = std::min(out.find_first_not_of("0123456789", begin), out.size());
  const std::string_view marks = mark == begin ? "-+=" : ".)";
  const bool markup = mark < out.size() && marks.find(out[mark]) != std::string_view::npos;
  return out.substr(begin, mark - begin) + (markup ? "\\" : "") + out.substr(mark);
}

std::string MarkdownBlock(std::string_view text) {
  const std::string body = VisibleText(text);
  size_t longest = 2, run = 0;
  for (const char c : body) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const std::string end = body.empty() || body.back() == '\n' ? "" : "\n";
  return fence + "\n" + body + end + fence + "\n";
}

}  // namespace shardproof
