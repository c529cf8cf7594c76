// trace_mutator.cc: how does libFuzzer change traces so that they stay traces?
//
// By lines: one goes, comes again elsewhere, changes places, or gets another number or a word of
// another line. Footers count again what is there. One change in four is libFuzzer's own.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using Lines = std::vector<std::string>;

Lines Split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Places where a value begins: after a colon, a comma or a bracket.
std::vector<size_t> Values(const std::string& line) {
  std::vector<size_t> places;
  for (size_t at = 1; at < line.size(); ++at) {
    const bool before = std::string_view(":,[").find(line[at - 1]) != std::string_view::npos;
    if (before && line[at] != '"' && line[at] != '[') places.push_back(at);
    if (line[at - 1] == ':' && line[at] == '"') places.push_back(at);
  }
  return places;
}

size_t EndOfValue(const std::string& line, size_t at) {
  if (line[at] == '"') return std::min(line.find('"', at + 1), line.size() - 1) + 1;
  return std::min(line.find_first_of(",]}", at), line.size());
}

class Mutator {
 public:
  explicit Mutator(unsigned seed) : draw_(seed) {}

  void Change(Lines* lines) {
    const size_t at = Below(lines->size()), other = Below(lines->size());
    const auto line = lines->begin() + static_cast<std::ptrdiff_t>(at);
    switch (Below(6)) {
      case 0:
        lines->erase(line);
        break;
      case 1: {
        const std::string copy = (*lines)[other];
        lines->insert(line, copy);
        break;
      }
      case 2:
        std::swap(*line, (*lines)[other]);
        break;
      default:
        ChangeValue(&*line, (*lines)[other]);
    }
  }

  size_t Below(size_t n) { return n == 0 ? 0 : draw_() % n; }

 private:
  void ChangeValue(std::string* line, const std::string& other) {
    const std::vector<size_t> places = Values(*line), others = Values(other);
    if (places.empty()) return;
    const size_t at = places[Below(places.size())], end = EndOfValue(*line, at);
    std::string value;
    if (Below(2) == 0 && !others.empty()) {
      const size_t from = others[Below(others.size())];
      value = other.substr(from, EndOfValue(other, from) - from);
    } else {
      constexpr const char* kNumbers[] = {
          "-1", "0", "1", "2", "3", "7", "65535", "16777215", "2147483647", "4611686018427387903"};
      value = kNumbers[Below(std::size(kNumbers))];
    }
    line->replace(at, end - at, value);
  }

  std::minstd_rand draw_;
};

std::string Joined(const Lines& lines) {
  std::string text;
  size_t events = 0;
  for (const std::string& line : lines) {
    if (line.starts_with("{\"shardproof_trace\"")) events = 0;
    events += line.starts_with("{\"e\"") ? 1 : 0;
    if (line.starts_with("{\"end\":")) {
      const size_t end = EndOfValue(line, 7);
      text += "{\"end\":" + std::to_string(events) + line.substr(end) + "\n";
    } else {
      text += line + "\n";
    }
  }
  return text;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  Mutator mutator(seed);
  Lines lines = Split({reinterpret_cast<const char*>(data), size});
  if (lines.empty() || mutator.Below(4) == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (size_t n = 1 + mutator.Below(3); n > 0 && !lines.empty(); --n) mutator.Change(&lines);
  const std::string text = Joined(lines);
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}
