#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "conformance/common/safe_text.h"
#include "conformance/report/console.h"
#include "conformance/report/failures.h"
#include "conformance/report/files.h"

namespace shardproof {

namespace {

// A reader of a pull request reads some screens: the rest is in report.jsonl.
constexpr size_t kSections = 40, kCasesInSection = 20, kParagraphs = 20, kLongestBlock = 2000;
constexpr size_t kLongestParagraph = 500;

std::string Cut(std::string text, size_t most) {
  if (text.size() <= most) return text;
  text.resize(most);  // a character that is cut in two is made visible
  return text + " ... (report.jsonl has all of it)";
}

std::string Paragraph(const std::string& foreign) {
  const std::string line = MarkdownLine(Cut(foreign, kLongestParagraph));
  return line.empty() ? line : "\n" + line + "\n";
}

void AddParagraphs(const std::vector<std::string>& lines, std::vector<std::string>& parts) {
  for (size_t i = 0; i < lines.size() && i < kParagraphs; ++i) parts.push_back(Paragraph(lines[i]));
  if (lines.size() > kParagraphs)
    parts.push_back(Paragraph("and " + std::to_string(lines.size() - kParagraphs) +
                              " more (report.jsonl has all)"));
}

std::string Block(const ToldFinding& told, const CaseReport& c, const Sentence& sentence) {
  return "\n" + MarkdownBlock(Cut(FindingText(told, c, sentence), kLongestBlock));
}

std::string Cases(size_t n) { return std::to_string(n) + (n == 1 ? " case" : " cases"); }

// The smallest case in full, then ids of others.
std::string Section(const RunReport& report, const Failure& failure, const Sentence& sentence) {
  const CaseReport& c = *failure.smallest;
  const std::string name = failure.breaks.empty() ? std::string(StatusName(c.status))
                                                  : failure.breaks + " " + sentence(failure.breaks);
  std::string text = "\n## " + MarkdownLine(name) + "\n" +
                     Paragraph(Cases(failure.cases.size()) + ", the smallest is " + c.id) +
                     Paragraph(c.reason);
  if (!failure.breaks.empty()) text += Block(failure.told, c, sentence);
  std::string others;
  for (size_t i = 1; i < failure.cases.size() && i <= kCasesInSection; ++i)
    others += "- " + MarkdownLine(Cut(report.cases[failure.cases[i]].id, kLongestParagraph)) + "\n";
  if (failure.cases.size() > kCasesInSection + 1)
    others += "- and " + std::to_string(failure.cases.size() - kCasesInSection - 1) +
              " more (report.jsonl has all)\n";
  return others.empty() ? text : text + "\nThe same in\n\n" + others;
}

// Notes of the smallest case with some, and how many more there are.
std::vector<std::string> Notes(const RunReport& report) {
  constexpr size_t kShown = 3;
  const CaseReport* smallest = nullptr;
  size_t cases = 0;
  for (const CaseReport& c : report.cases) {
    if (c.notes.empty()) continue;
    ++cases;
    if (smallest == nullptr || IsSmaller(c.id, smallest->id)) smallest = &c;
  }
  if (smallest == nullptr) return {};
  std::vector<std::string> lines = {Cases(cases) + " with notes (report.jsonl has all); of " +
                                    smallest->id + ":"};
  for (size_t i = 0; i < smallest->notes.size() && i < kShown; ++i)
    lines.push_back(smallest->notes[i]);
  return lines;
}

// What is waived or only warns: each requirement once, with its first case.
std::vector<std::string> Excused(const RunReport& report, const Sentence& sentence) {
  struct Row {
    const CaseReport* first = nullptr;
    const ReportedFinding* finding = nullptr;
    std::set<std::string> cases;
  };
  std::map<std::pair<std::string, std::string>, Row> rows;  // by requirement and why
  for (const CaseReport& c : report.cases) {
    for (const ReportedFinding& finding : c.findings) {
      const bool waived = !finding.waived_because.empty();
      if (!waived && !Warns(finding)) continue;
      Row& row = rows[{finding.finding.requirement,
                       waived ? "waived: " + finding.waived_because : "a warning"}];
      if (row.first == nullptr) row = {&c, &finding, {}};
      row.cases.insert(c.id);
    }
  }
  std::vector<std::string> sections;
  for (const auto& [name, row] : rows) {
    sections.push_back("\n## " +
                       MarkdownLine(Cut(name.first + ", " + name.second, kLongestParagraph)) +
                       "\n" + Paragraph(Cases(row.cases.size()) + ", for example:") +
                       Block({row.finding, {}, 0, {}}, *row.first, sentence));
  }
  return sections;
}

// Counts, and each failure in a row.
std::string Tables(const RunReport& report, const std::vector<Failure>& failures) {
  std::string text = "\n| status | cases |\n|---|---|\n";
  for (const auto& [status, n] : Count(report))
    text += std::string("| ") + StatusName(status) + " | " + std::to_string(n) + " |\n";
  if (!failures.empty()) text += "\n| broken | cases | smallest case |\n|---|---|---|\n";
  for (size_t i = 0; i < failures.size() && i < kSections; ++i)
    text += "| " + MarkdownLine(failures[i].breaks.empty() ? "-" : failures[i].breaks) + " | " +
            std::to_string(failures[i].cases.size()) + " | " +
            MarkdownLine(Cut(failures[i].smallest->id, kLongestParagraph)) + " |\n";
  return text;
}

}  // namespace

std::string SummaryMarkdown(const RunReport& report, const Sentence& sentence) {
  const std::vector<Failure> failures = FailuresOf(report);
  std::vector<std::string> parts = {"# " + MarkdownLine(LastLine(report)) + "\n",
                                    Paragraph(RunText(report)), Tables(report, failures)};
  AddParagraphs(report.facts, parts);
  AddParagraphs(report.problems, parts);
  AddParagraphs(RequirementLines(report, kParagraphs), parts);
  AddParagraphs(WarningLines(report, sentence), parts);
  AddParagraphs(Notes(report), parts);
  for (const Failure& failure : failures) parts.push_back(Section(report, failure, sentence));
  for (std::string& section : Excused(report, sentence)) parts.push_back(std::move(section));
  std::string text;
  size_t told = 0;
  while (told < parts.size() && text.size() + parts[told].size() < kLargestSummary)
    text += parts[told++];
  if (told < parts.size())
    text += Paragraph("and " + std::to_string(parts.size() - told) +
                      " more paragraphs and sections (report.jsonl has all)");
  return text;
}

}  // namespace shardproof
