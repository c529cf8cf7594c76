// safe_text.h: how is text of engines, traces and files shown without doing anything?
//
// A terminal obeys escape sequences, a bidi mark turns a line around, XML forbids most control
// characters and two characters that UTF-8 can write. So text that is not ours is made visible
// before it is shown: what acts or cannot be seen is written out as \x1b (a byte) or \u202e (a
// character). What is safe stays as it is, so doing it twice is doing it once.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace shardproof {

// Bytes of the character at the start of text, 1 to 4; 0: no valid UTF-8 begins there. REQUIRES:
// text is not empty.
size_t Utf8Length(std::string_view text);

// A character that acts or cannot be seen: C0 and C1 controls, DEL, bidi marks, zero-width and tag
// characters, line and paragraph separators, noncharacters. REQUIRES: one valid character.
bool IsHazard(std::string_view character);

// The character within quotes of JSON: \u202e, or two of them above U+FFFF. REQUIRES: one valid
// character.
std::string JsonEscape(std::string_view character);

// Valid UTF-8 without hazards, but for newlines; a tab becomes a blank.
std::string VisibleText(std::string_view text);
// The same in one line: a newline becomes "\n", two characters.
std::string VisibleLine(std::string_view text);

// The same in lines, of which all but the first begin with blanks: text of others is never taken
// for a line of ours.
std::string IndentedText(std::string_view text, size_t blanks = 4);

// For attributes and contents of XML 1.0. Newlines become &#10;.
std::string XmlText(std::string_view text);

// For a paragraph, heading or table cell of Markdown: one line, without markup.
std::string MarkdownLine(std::string_view text);
// A fenced block. The fence is longer than any within the text.
std::string MarkdownBlock(std::string_view text);

}  // namespace shardproof
