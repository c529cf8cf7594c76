#include "conformance/report/console.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "conformance/common/safe_text.h"
#include "conformance/report/failures.h"

namespace shardproof {

Console::Console(std::ostream& out, bool terminal, bool verbose, size_t total, Sentence sentence,
                 bool all, bool quiet)
    : safe_(out.rdbuf()),
      terminal_(terminal),
      verbose_(verbose),
      all_(all),
      quiet_(quiet),
      total_(total),
      sentence_(std::move(sentence)) {}

std::string FindingText(const ToldFinding& told, const CaseReport& report,
                        const Sentence& sentence) {
  const ReportedFinding& row = *told.row;
  const Finding& finding = row.finding;
  std::string text = BrokenBy(told) + "  " + sentence(finding.requirement) + "\n";
  const auto line = [&text](const char* name, const std::string& value) {
    if (value.empty()) return;
    text += std::string("    ") + name + IndentedText(value, 17) + "\n";
  };
  if (row.warning) line("warning    ", "a SHOULD: only --strict makes it a failure");
  line("case       ", report.id);
  std::string where = finding.rank < 0 ? "" : "rank " + std::to_string(finding.rank);
  if (finding.step >= 0)
    where += (where.empty() ? "step " : ", step ") + std::to_string(finding.step);
  if (finding.event >= 0) where += ", event " + std::to_string(finding.event);
  line("where      ", where);
  line("stream     ", finding.stream);
  line("operation  ", finding.operation);
  line("expected   ", finding.expected);
  line("seen       ", finding.seen);
  line("           ", finding.message);
  line("replay     ", report.replay);
  line("", FoldedLine(told));
  return text;
}

namespace {

// Requirements by why nothing was said about them, and in how many cases.
struct Reason {
  std::set<std::string> requirements, cases;
};
using Reasons = std::map<std::string, Reason>;

void Collect(const CaseReport& report, NotCheckable::Kind kind, Reasons& reasons) {
  for (const NotCheckable& row : report.not_checkable) {
    if (row.kind != kind) continue;
    reasons[row.why].requirements.insert(row.requirement);
    reasons[row.why].cases.insert(report.id);
  }
}

std::string Joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

std::string OpenText(const CaseReport& report) {
  Reasons reasons;
  Collect(report, NotCheckable::Kind::kMissing, reasons);
  std::string text;
  for (const auto& [why, reason] : reasons)
    text += (text.empty() ? "" : "; ") + Joined(reason.requirements) + ": " + why;
  return text;
}

std::vector<std::string> RequirementLines(const RunReport& report, size_t most) {
  const RequirementCounts counts = CountRequirements(report);
  std::vector<std::string> lines = {"requirements: " + std::to_string(counts.judged) + " judged, " +
                                    std::to_string(counts.missing) + " not judged in some case, " +
                                    std::to_string(counts.not_asked) + " not asked"};
  using Kind = NotCheckable::Kind;
  const std::pair<Kind, std::string> kinds[] = {{Kind::kMissing, "not judged ("},
                                                {Kind::kBounded, "judged within a bound ("},
                                                {Kind::kNotAsked, "not asked ("}};
  for (const auto& [kind, name] : kinds) {
    Reasons reasons;
    for (const CaseReport& c : report.cases) Collect(c, kind, reasons);
    size_t told = 0;
    for (const auto& [why, reason] : reasons) {
      if (told++ == most) {
        lines.push_back("and for " + std::to_string(reasons.size() - most) +
                        " more reasons (--report DIR lists all)");
        break;
      }
      lines.push_back(name + std::to_string(reason.cases.size()) +
                      (reason.cases.size() == 1 ? " case): " : " cases): ") +
                      Joined(reason.requirements) + ": " + why);
    }
  }
  return lines;
}

std::vector<std::string> WarningLines(const RunReport& report, const Sentence& sentence) {
  std::vector<std::string> lines;
  for (const auto& [id, cases] : CountWarnings(report))
    lines.push_back("warning (" + std::to_string(cases) + (cases == 1 ? " case): " : " cases): ") +
                    id + "  " + sentence(id));
  if (!lines.empty()) {
    lines.push_back(
        "warnings are of a SHOULD: --verbose and --report DIR show them, --strict "
        "makes them failures");
  }
  return lines;
}

void Console::Bar() {
  constexpr size_t kWidth = 40;
  const size_t full = total_ == 0 ? kWidth : std::min(kWidth, done_ * kWidth / total_);
  out_ << TerminalCode{"\r"} << "[" << std::string(full, '=') << std::string(kWidth - full, ' ')
       << "] " << done_ << "/" << total_;
  if (failed_ > 0) out_ << ", " << failed_ << " not passed";
  out_ << std::flush;
}

void Console::ShowFindings(const CaseReport& report) {
  for (const ToldFinding& told : TellFindings(report, all_))
    out_ << "  " << FindingText(told, report, sentence_);
}

void Console::ShowStatus(const CaseReport& report) {
  if (terminal_) out_ << TerminalCode{"\r\033[K"};
  out_ << StatusName(report.status) << "  " << VisibleLine(report.id);
  const std::string why = report.status == Status::kPartial ? OpenText(report) : report.reason;
  if (!why.empty()) out_ << "  (" << VisibleLine(why) << ")";
}

void Console::ShowIfNew(const CaseReport& report) {
  std::vector<std::string> broken;  // of the case
  for (const ToldFinding& told : TellFindings(report, false)) {
    if (!told.row->warning) broken.push_back(told.finding().requirement);
  }
  if (broken.empty()) broken.push_back(report.reason);
  const auto known = [this](const std::string& id) { return broken_.contains(id); };
  if (std::all_of(broken.begin(), broken.end(), known)) return;
  broken_.insert(broken.begin(), broken.end());
  if (in_full_ < kToldInFull) {
    ++in_full_;
    ShowStatus(report);
    out_ << "\n";
    ShowFindings(report);
  } else if (in_a_line_ < kToldInALine) {
    ++in_a_line_;
    ShowStatus(report);
    for (size_t i = 0; i < broken.size() && report.reason.empty(); ++i)
      out_ << (i == 0 ? ": " : ", ") << broken[i];
    out_ << "\n";
  }
}

void Console::CaseDone(const CaseReport& report) {
  Tell(report);
  Counted(report);
}

namespace {

bool NotPassed(const CaseReport& report) {
  return report.status == Status::kFail || report.status == Status::kSuiteError;
}

}  // namespace

void Console::Tell(const CaseReport& report) {
  if (quiet_) return;
  if (verbose_ || (all_ && NotPassed(report))) {
    ShowStatus(report);
    out_ << "\n";
    ShowFindings(report);
  } else if (NotPassed(report)) {
    ShowIfNew(report);
  }
  out_ << std::flush;  // a run that is killed has told what it did
}

void Console::Counted(const CaseReport& report) {
  ++done_;
  partial_ += report.status == Status::kPartial || report.status == Status::kNotCheckable ? 1 : 0;
  failed_ += NotPassed(report) ? 1 : 0;
  if (quiet_) return;
  if (terminal_) return Bar();
  if (verbose_ || (done_ % std::max<size_t>(50, (total_ + 9) / 10) != 0 && done_ != total_)) return;
  out_ << done_ << " of " << total_ << " cases judged, " << failed_ << " not passed";
  if (partial_ > 0) out_ << ", " << partial_ << " in part or not at all";
  out_ << "\n" << std::flush;
}

void Console::ShowLines(const std::vector<std::string>& lines, size_t most, const char* what) {
  for (size_t i = 0; i < lines.size() && (verbose_ || i < most); ++i)
    out_ << VisibleLine(lines[i]) << "\n";
  if (!verbose_ && lines.size() > most)
    out_ << "and " << lines.size() - most << " more " << what << " (--verbose shows all)\n";
}

void Console::ShowUnsupported(const RunReport& report) {
  std::map<std::string, int> reasons;
  for (const CaseReport& c : report.cases) {
    if (c.status == Status::kUnsupported) ++reasons[c.reason];
  }
  std::vector<std::pair<std::string, int>> rows(reasons.begin(), reasons.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> lines;
  for (const auto& [reason, n] : rows)
    lines.push_back("unsupported (" + std::to_string(n) + "): " + reason);
  ShowLines(lines, kReasonsAtEnd, "reasons of unsupported cases");
}

void Console::ShowWhatWasAsked(const RunReport& report) {
  if (terminal_) out_ << "\n";
  ShowUnsupported(report);
  for (const std::string& fact : report.facts) out_ << VisibleLine(fact) << "\n";
  for (const std::string& line : RequirementLines(report, verbose_ ? SIZE_MAX : kReasonsAtEnd))
    out_ << VisibleLine(line) << "\n";
  ShowLines(WarningLines(report, sentence_), 2 * kReasonsAtEnd, "lines of warnings");
}

void Console::Finish(const RunReport& report) {
  if (!quiet_) ShowWhatWasAsked(report);
  if (report.cases.size() > 1) {
    for (const std::string& line : FailureLines(report, kFailuresAtEnd))
      out_ << VisibleLine(line) << "\n";
  }
  ShowLines(report.problems, 4 * kReasonsAtEnd, "problems");
  out_ << LastLine(report) << "\n" << std::flush;
}

}  // namespace shardproof
