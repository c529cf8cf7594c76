#include "conformance/report/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "conformance/common/safe_stream.h"

namespace shardproof {

namespace {

constexpr size_t kLeastRoom = 20;
constexpr size_t kLabels = 4, kValues = 15;  // columns of a finding
constexpr std::string_view kLabelled[] = {"warning",  "case", "where",  "stream", "operation",
                                          "expected", "seen", "replay", "partner"};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

size_t WidthOf(bool terminal) {
  if (!terminal) return 0;
  const std::string columns = Environment("COLUMNS");
  if (!columns.empty() && columns.size() < 5 &&
      columns.find_first_not_of("0123456789") == std::string::npos)
    return std::stoul(columns);
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// A character of several bytes has one column.
size_t Columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

const char* CodeOf(Paint paint) {
  switch (paint) {
    case Paint::kGood:
      return "\033[32m";
    case Paint::kBad:
      return "\033[31m";
    case Paint::kWarning:
      return "\033[33m";
    case Paint::kStrong:
      return "\033[1m";
    case Paint::kSoft:
      return "\033[2m";
    case Paint::kNone:
      break;
  }
  return "";
}

Paint PaintOf(std::string_view label) {
  if (label == "expected") return Paint::kGood;
  if (label == "seen") return Paint::kBad;
  if (label == "replay" || label == "partner") return Paint::kStrong;
  return label == "warning" ? Paint::kWarning : Paint::kNone;
}

size_t BlanksBefore(std::string_view text) {
  return std::min(text.find_first_not_of(' '), text.size());
}

}  // namespace

Display DisplayOf(const std::string& color, bool terminal) {
  const bool wanted = terminal && Environment("NO_COLOR").empty() && Environment("TERM") != "dumb";
  return {terminal, color == "always" || (color != "never" && wanted), WidthOf(terminal)};
}

std::vector<std::string> WrappedLines(std::string_view line, size_t width, size_t blanks) {
  if (width < blanks + kLeastRoom || Columns(line) <= width) return {std::string(line)};
  std::vector<std::string> lines = {std::string(BlanksBefore(line), ' ')};
  bool fresh = true;  // nothing but blanks stands in the last line
  for (size_t at = BlanksBefore(line); at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    if (!fresh && Columns(lines.back()) + 1 + Columns(word) > width) {
      lines.emplace_back(blanks, ' ');
      fresh = true;
    }
    if (!fresh) lines.back() += ' ';
    lines.back() += word;
    fresh = false;
    at = end + 1;
  }
  return lines;
}

void Screen::Put(std::string_view text, Paint paint) {
  if (!display_.colors || paint == Paint::kNone || text.empty()) {
    out_ << text;
    return;
  }
  out_ << TerminalCode{CodeOf(paint)} << text << TerminalCode{"\033[0m"};
}

void Screen::Line(const std::string& text, Paint paint) {
  for (const std::string& line : WrappedLines(text, display_.width, BlanksBefore(text) + 4)) {
    Put(line, paint);
    out_ << "\n";
  }
}

void Screen::Command(const std::string& line) {
  Put(line, Paint::kStrong);
  out_ << "\n";
}

// "    seen       two"
void Screen::LabelledLine(const std::string& line) {
  const size_t end = std::min(line.find(' ', kLabels), line.size());
  const std::string label =
      BlanksBefore(line) == kLabels ? line.substr(kLabels, end - kLabels) : "";
  const bool labelled =
      line.size() > kValues &&
      std::find(std::begin(kLabelled), std::end(kLabelled), label) != std::end(kLabelled);
  const size_t before = labelled ? kValues : 0;
  const bool pastes = labelled && (label == "replay" || label == "partner" || label == "case");
  const std::vector<std::string> lines =
      pastes ? std::vector<std::string>{line} : WrappedLines(line, display_.width, kValues + 2);
  const Paint paint = labelled ? PaintOf(label) : Paint::kNone;
  Put(lines.front().substr(0, before), Paint::kSoft);
  for (size_t i = 0; i < lines.size(); ++i) {
    Put(i == 0 ? lines[i].substr(before) : lines[i], paint);
    out_ << "\n";
  }
}

// "FS-05, EP-23  sentence"
void Screen::Headline(const std::string& line) {
  const size_t end = std::min(line.find("  "), line.size()) + 2;
  const std::vector<std::string> lines = WrappedLines("  " + line, display_.width, 4);
  const size_t ids = std::min(end, lines.front().size());
  Put(lines.front().substr(0, ids), Paint::kBad);
  out_ << lines.front().substr(ids) << "\n";
  for (size_t i = 1; i < lines.size(); ++i) out_ << lines[i] << "\n";
}

void Screen::Finding(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  if (std::getline(lines, line)) Headline(line);
  while (std::getline(lines, line)) LabelledLine(line);
}

void Screen::BeginAgain() {
  if (display_.rewrites) out_ << TerminalCode{"\r\033[K"};
}

}  // namespace shardproof
