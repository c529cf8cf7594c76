#include "conformance/report/badge.h"

#include <string_view>

#include "conformance/common/safe_text.h"

namespace shardproof {

namespace {

constexpr int kCharacter = 7, kPadding = 10;  // in the units of the drawing, of an 11 px font

int Of(const StatusCounts& counts, Status status) {
  const auto found = counts.find(StatusName(status));
  return found == counts.end() ? 0 : found->second;
}

// What the colour is behind: white letters on it have a contrast of at least 4.5 to 1.
const char* Colour(RunVerdict verdict) {
  switch (verdict) {
    case RunVerdict::kConformant:
    case RunVerdict::kWithinBounds:
      return "#1a7f37";
    case RunVerdict::kNothingHere:
      return "#57606a";
    case RunVerdict::kWhereJudged:
      return "#8a5a00";
    case RunVerdict::kNotConformant:
    case RunVerdict::kSuiteFailed:
      break;
  }
  return "#b3261e";
}

std::string Words(RunVerdict verdict, const StatusCounts& counts) {
  if (verdict == RunVerdict::kNothingHere) return VerdictName(verdict);
  const int failed = Of(counts, Status::kFail) + Of(counts, Status::kSuiteError);
  const int open = Of(counts, Status::kPartial) + Of(counts, Status::kNotCheckable);
  const int waived = Of(counts, Status::kWaived);
  const int good = Of(counts, Status::kPass) + Of(counts, Status::kBounded);
  const int all = failed + open + waived + good;
  std::string text = std::string(VerdictName(verdict)) + ": ";
  if (failed > 0) return text + std::to_string(failed) + " of " + std::to_string(all) + " failed";
  if (all == 0) return text + "nothing judged";
  text += std::to_string(good) + (open > 0 || waived > 0 ? " of " + std::to_string(all) : "") +
          " passed";
  return waived > 0 ? text + ", " + std::to_string(waived) + " waived" : text;
}

// A box with words in its middle, as wide as they are said to be in whatever font there is.
std::string Box(int x, int width, const char* colour, std::string_view words) {
  const int length = width - 2 * kPadding;
  return "<rect x=\"" + std::to_string(x) + "\" width=\"" + std::to_string(width) +
         "\" height=\"20\" fill=\"" + colour + "\"/><text x=\"" + std::to_string(x + kPadding) +
         "\" y=\"14\" textLength=\"" + std::to_string(length) + "\">" + XmlText(words) + "</text>";
}

int Width(std::string_view words) {
  return static_cast<int>(words.size()) * kCharacter + 2 * kPadding;
}

}  // namespace

std::string Badge(RunVerdict verdict, const StatusCounts& counts, const std::string& engine) {
  constexpr std::string_view kName = "shardproof";
  constexpr size_t kLongestEngine = 200;
  const std::string words = Words(verdict, counts);
  const int name = Width(kName), said = Width(words);
  const std::string title = XmlText(VisibleLine(engine.substr(0, kLongestEngine)) + ": " + words);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(name + said) +
         "\" height=\"20\" role=\"img\" aria-label=\"" + title + "\"><title>" + title +
         "</title><g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" "
         "font-size=\"11\">" +
         Box(0, name, "#444", kName) + Box(name, said, Colour(verdict), words) + "</g></svg>\n";
}

std::string Badge(const RunReport& report) {
  StatusCounts counts;
  for (const auto& [status, n] : Count(report)) counts[StatusName(status)] = n;
  return Badge(Decide(report).verdict, counts, report.impl);
}

static StatusCounts CountsOf(const ReadReport& report) {
  StatusCounts counts;
  for (const auto& [id, c] : report.cases) ++counts[c.status];
  return counts;
}

std::string Badge(const ReadReport& report) {
  return Badge(VerdictNamed(report.verdict), CountsOf(report), report.impl);
}

std::string VerdictLine(const ReadReport& report) {
  const StatusCounts counts = CountsOf(report);
  std::string text = VerdictName(VerdictNamed(report.verdict));
  const char* comma = ": ";
  for (int i = 0; i <= static_cast<int>(Status::kSuiteError); ++i) {
    const auto status = static_cast<Status>(i);
    if (Of(counts, status) == 0) continue;
    text += comma + std::to_string(Of(counts, status)) + " " + StatusName(status);
    comma = ", ";
  }
  if (!report.problems.empty())
    text += comma + std::to_string(report.problems.size()) +
            (report.problems.size() == 1 ? " problem" : " problems");
  return text;
}

}  // namespace shardproof
