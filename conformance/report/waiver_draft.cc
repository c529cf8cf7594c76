#include "conformance/report/waiver_draft.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "conformance/common/safe_text.h"
#include "conformance/report/report.h"

namespace shardproof {

namespace {

// In quotes. What acts on a terminal is cut off: a message is part of the finding's.
std::string TomlText(const std::string& text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const size_t bytes = Utf8Length(rest);
    if (bytes == 0 || IsHazard(rest.substr(0, bytes))) break;
    if (text[at] == '"' || text[at] == '\\') out += '\\';
    out += rest.substr(0, bytes);
    at += bytes;
  }
  return out + "\"";
}

// As a glob: what acts on a terminal, or ends a line, becomes "?".
std::string OnOneLine(const std::string& id) {
  std::string glob;
  for (size_t at = 0; at < id.size();) {
    const std::string_view rest = std::string_view(id).substr(at);
    const size_t bytes = std::max(Utf8Length(rest), size_t{1});
    const bool shown = Utf8Length(rest) > 0 && !IsHazard(rest.substr(0, bytes));
    glob += shown ? std::string(rest.substr(0, bytes)) : std::string(bytes, '?');
    at += bytes;
  }
  return glob;
}

// The id, or what all of them begin and end with: whole parts where there are some.
std::string GlobOf(const std::vector<std::string>& ids) {
  const auto common = [&](auto begin) {
    size_t length = 0;
    while (std::all_of(ids.begin(), ids.end(), [&](const std::string& id) {
      return length < id.size() && *(begin(id) + static_cast<ptrdiff_t>(length)) ==
                                       *(begin(ids[0]) + static_cast<ptrdiff_t>(length));
    }))
      ++length;
    return length;
  };
  if (ids.size() == 1) return ids[0];
  const std::string& first = ids[0];
  std::string head = first.substr(0, common([](const std::string& id) { return id.begin(); }));
  std::string tail =
      first.substr(first.size() - common([](const std::string& id) { return id.rbegin(); }));
  const size_t last = head.rfind('.'), next = tail.find('.');
  head.resize(last == std::string::npos ? 0 : last + 1);
  tail.erase(0, next == std::string::npos ? tail.size() : next);
  return head + "*" + tail;
}

// What differs from case to case, and from rank to rank, is mostly numbers.
std::string WithoutNumbers(const std::string& message) {
  std::string text;
  for (const char c : message) {
    if (c < '0' || c > '9') text += c;
  }
  return text;
}

constexpr size_t kMostCompared = 500;  // characters of a message: the work grows with their square

// The longest text that both have.
std::string Common(const std::string& whole_a, const std::string& whole_b) {
  const std::string a = whole_a.substr(0, kMostCompared), b = whole_b.substr(0, kMostCompared);
  std::vector<size_t> above(b.size() + 1), here(b.size() + 1);
  size_t best = 0, end = 0;
  for (size_t i = 1; i <= a.size(); ++i, std::swap(above, here)) {
    for (size_t j = 1; j <= b.size(); ++j) {
      here[j] = a[i - 1] == b[j - 1] ? above[j - 1] + 1 : 0;
      if (here[j] > best) best = here[j], end = i;
    }
  }
  return a.substr(end - best, best);
}

struct Cause {
  std::string message;  // what the messages have in common
  std::vector<std::string> ids;
};
// By requirement, and message without numbers.
using Causes = std::map<std::pair<std::string, std::string>, Cause>;

Causes CausesOf(const ReadReport& report) {
  Causes causes;
  for (const auto& [id, c] : report.cases) {
    if (id == kEngineRow) continue;
    for (const auto& [requirement, message] : c.causes) {
      Cause& cause = causes[{requirement, WithoutNumbers(message)}];
      cause.message = cause.ids.empty() ? message : Common(cause.message, message);
      if (cause.ids.empty() || cause.ids.back() != id) cause.ids.push_back(id);
    }
  }
  return causes;
}

}  // namespace

std::string WaiverDraft(const ReadReport& report, const std::string& expires) {
  std::string text = "# What failed in " + VisibleLine(report.file) + ", of " +
                     VisibleLine(report.impl) +
                     ".\n# Each waiver needs a reason, say the issue that it is tracked as, and "
                     "may be narrowed.\n";
  const auto engine = report.cases.find(kEngineRow);
  if (engine != report.cases.end() && !engine->second.causes.empty())
    text +=
        "# The engine could not be loaded, or failed before any case: no waiver excuses that.\n";
  for (const auto& [key, cause] : CausesOf(report)) {
    text += "\n[[waiver]]  # " + std::to_string(cause.ids.size()) +
            (cause.ids.size() == 1 ? " case" : " cases") +
            "\nrequirement = " + TomlText(key.first) +
            "\ncase = " + TomlText(OnOneLine(GlobOf(cause.ids))) +
            "\nmessage = " + TomlText(cause.message) + "\nreason = \"\"\nexpires = \"" + expires +
            "\"\n";
  }
  return text;
}

}  // namespace shardproof
