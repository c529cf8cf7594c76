// hostile_reports FOLDER COUNT: what becomes of reports whose every text is hostile?
//
// Writes FOLDER/N/report.jsonl, junit.xml, summary.md and console.txt, as a run would, and prints a
// line "N CASES FENCES HEADINGS" for each: what the readers must find (report_safety_test.py).
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/report/console.h"
#include "conformance/report/failures.h"
#include "conformance/report/report_folder.h"

namespace {

using namespace shardproof;  // NOLINT: a program of one file

class Draw {
 public:
  explicit Draw(uint64_t seed) : next_(seed) {}
  uint64_t Below(uint64_t n) { return next_() % n; }

  // Bytes, pieces of characters, hazards, markup.
  std::string Text() {
    static const std::array kPieces = {"\x1b[2J",      "\x1b]0;t\x07",
                                       "\r",           "\n",
                                       "\t",           "\b",
                                       "\x7f",         "\xc2\x9b",
                                       "\u202e",       "\u2066x",
                                       "\u200b",       "\ufeff",
                                       "\xef\xbf\xbe", "\xef\xbf\xbf",
                                       "\xed\xa0\x80", "\xf4\x90",
                                       "\xc0\x80",     "\u2028",
                                       "\n```\n",      "\n````\n",
                                       "\n~~~\n",      "|",
                                       "]]>",          "<!--",
                                       "<testcase/>",  "</testsuite>",
                                       "\"",           "'",
                                       "&#0;",         "\n# h\n",
                                       "\n- item\n",   "\n===\n",
                                       "\n    code\n", "\n| a |\n",
                                       "\\u0000",      "\\",
                                       "conformant",   "\U000E0041",
                                       "{\"end\":1}",  "\n{\"end\":1}\n"};
    std::string text;
    for (uint64_t n = Below(8); n > 0; --n) {
      if (Below(4) == 0) {
        text += static_cast<char>(Below(256));
      } else {
        text += kPieces[Below(kPieces.size())];
      }
    }
    return text;
  }

 private:
  std::mt19937_64 next_;
};

Finding AnyFinding(Draw& draw) {
  Finding f;
  f.requirement = draw.Text();
  f.rank = static_cast<int>(draw.Below(3)) - 1;
  for (std::string* text : {&f.stream, &f.operation, &f.expected, &f.seen, &f.message})
    *text = draw.Text();
  return f;
}

CaseReport AnyCase(Draw& draw) {
  constexpr Status kAll[] = {Status::kPass,        Status::kPartial,      Status::kFail,
                             Status::kUnsupported, Status::kNotCheckable, Status::kSuiteError};
  CaseReport c;
  c.id = draw.Text();
  c.status = kAll[draw.Below(std::size(kAll))];
  c.reason = draw.Text();
  for (uint64_t n = draw.Below(3); n > 0; --n) {
    c.findings.push_back(
        {AnyFinding(draw), draw.Below(2) == 0 ? "" : draw.Text(), draw.Below(2) == 0});
    if (c.findings.size() > 1 && draw.Below(2) == 0) c.findings.back().finding.follows = 0;
    c.not_checkable.push_back({draw.Text(), draw.Text()});
    c.notes.push_back(draw.Text());
    c.judged.push_back(draw.Text());
  }
  c.replay = draw.Text();
  c.shrink = draw.Text();
  for (uint64_t n = draw.Below(3); n > 0; --n)
    c.printed[static_cast<int32_t>(draw.Below(3)) - 1] = draw.Text();
  return c;
}

RunReport AnyReport(Draw& draw) {
  RunReport report;
  for (std::string* text : {&report.impl, &report.fabric, &report.profile, &report.asked,
                            &report.fault, &report.assurance})
    *text = draw.Text();
  report.engine = draw.Text();
  if (draw.Below(4) == 0) report.cut_short = draw.Text();
  report.all_findings = draw.Below(2) == 0;
  for (uint64_t n = draw.Below(4); n > 0; --n) report.cases.push_back(AnyCase(draw));
  for (uint64_t n = draw.Below(3); n > 0; --n) {
    report.facts.push_back(draw.Text());
    report.problems.push_back(draw.Text());
  }
  return report;
}

void WriteOne(const std::string& folder, uint64_t seed) {
  Draw draw(seed);
  const RunReport report = AnyReport(draw);
  const Sentence sentence = [&draw](std::string_view) { return draw.Text(); };
  RunReport header = report;
  header.cases.clear();
  ReportFolder files(folder, header, sentence);
  for (const CaseReport& c : report.cases) files.CaseDone(c, [&] { return report; });
  const bool killed = seed % 4 == 0;
  if (!killed) files.Finish(report);

  std::ofstream out(folder + "/console.txt", std::ios::binary);
  Console console(out, {}, true, report.cases.size(), sentence, report.all_findings);
  for (const CaseReport& c : report.cases) console.CaseDone(c);
  console.Finish(report);

  size_t fences = 0, headings = 1;  // the title
  std::set<std::pair<std::string, std::string>> excused;
  for (const CaseReport& c : report.cases) {
    for (const ReportedFinding& row : c.findings) {
      if (Warns(row) || !row.waived_because.empty())
        excused.insert({row.finding.requirement, row.waived_because});
    }
  }
  if (!killed) {
    const std::vector<Failure> failures = FailuresOf(report);
    headings += failures.size() + excused.size();
    fences += excused.size();
    for (const Failure& failure : failures) fences += failure.told.row == nullptr ? 0 : 1;
  }
  if (killed) ++headings;  // the run has not ended
  std::cout << seed << " " << (killed ? 1 : report.cases.size()) + report.problems.size() << " "
            << fences << " " << headings << " " << (killed ? "killed" : "ended") << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "hostile_reports FOLDER COUNT\n";
    return 3;
  }
  const uint64_t count = std::stoull(argv[2]);
  for (uint64_t seed = 0; seed < count; ++seed)
    WriteOne(std::string(argv[1]) + "/" + std::to_string(seed), seed);
  return 0;
}
