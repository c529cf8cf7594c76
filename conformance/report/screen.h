// screen.h: how do lines come to a person's screen: in colours, and as wide as it is?
#pragma once
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

struct Display {
  bool rewrites = false;  // a terminal: a line can be written over
  bool colors = false;
  size_t width = 0;  // columns; 0: lines are not wrapped
};

// color: "auto", "always" or "never", as --color says. auto: on a terminal whose TERM is not
// "dumb", unless NO_COLOR is set and not empty (no-color.org). The width is COLUMNS, or else the
// terminal's.
Display DisplayOf(const std::string& color, bool terminal);

enum class Paint { kNone, kGood, kBad, kWarning, kStrong, kSoft };

// Lines of at most so many columns, broken at blanks; all but the first begin with so many blanks.
// A word that is longer stays whole. width 0, or no room for 20 columns: one line.
std::vector<std::string> WrappedLines(std::string_view line, size_t width, size_t blanks);

// Writes safe text of ours to a stream (common/safe_stream.h).
class Screen {
 public:
  Screen(std::ostream& out, const Display& display) : out_(out), display_(display) {}
  const Display& display() const { return display_; }

  void Put(std::string_view text, Paint paint = Paint::kNone);
  // Wrapped; further lines begin where the text does, and four columns on.
  void Line(const std::string& text, Paint paint = Paint::kNone);
  // A command: it pastes, so it is not wrapped.
  void Command(const std::string& line);
  // As of FindingText (console.h): the requirement, then lines "    label      value".
  void Finding(const std::string& text);
  void BeginAgain();  // of a terminal: the line goes

 private:
  void Headline(const std::string& line);
  void LabelledLine(const std::string& line);

  std::ostream& out_;
  const Display display_;
};

}  // namespace shardproof
