#include "conformance/report/console.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "conformance/common/safe_text.h"
#include "conformance/report/failures.h"
#include "conformance/report/verdict_rule.h"

namespace shardproof {

Console::Console(std::ostream& out, const Display& display, bool verbose, size_t total,
                 Sentence sentence, bool all, bool quiet, RunClock clock)
    : safe_(out.rdbuf()),
      screen_(out_, display),
      clock_(std::move(clock)),
      pace_(total),
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
  line("partner    ", row.partner);
  line("", FoldedLine(told));
  return text;
}

std::string Console::Times() const { return clock_ ? ", " + PaceText(pace_, Now()) : ""; }

void Console::Bar() {
  constexpr size_t kWidth = 40;
  const size_t full = total_ == 0 ? kWidth : std::min(kWidth, done_ * kWidth / total_);
  screen_.BeginAgain();
  out_ << "[" << std::string(full, '=') << std::string(kWidth - full, ' ') << "] " << done_ << "/"
       << total_;
  if (failed_ > 0) screen_.Put(", " + std::to_string(failed_) + " not passed", Paint::kBad);
  out_ << Times() << std::flush;
  shown_ = Now();
}

void Console::CountLine() {
  out_ << done_ << " of " << total_ << " cases judged, " << failed_ << " not passed";
  if (partial_ > 0) out_ << ", " << partial_ << " in part or not at all";
  out_ << Times() << "\n" << std::flush;
  shown_ = Now();
}

void Console::Tick() {
  if (quiet_ || !clock_) return;
  const bool bar = screen_.display().rewrites;
  if (Now() - shown_ < (bar ? 1 : kSilentSeconds)) return;
  if (bar) {
    Bar();
  } else {
    CountLine();
  }
}

void Console::ShowFindings(const CaseReport& report) {
  for (const ToldFinding& told : TellFindings(report, all_))
    screen_.Finding(FindingText(told, report, sentence_));
}

void Console::ShowNotes(const CaseReport& report) {
  const size_t shown = all_ ? report.notes.size() : kNotesOfACase;
  for (size_t i = 0; i < report.notes.size() && i < shown; ++i)
    screen_.Line("note: " + VisibleLine(report.notes[i]));
  if (report.notes.size() > shown)
    out_ << "and " << report.notes.size() - shown << " more notes (--all)\n";
}

namespace {

bool NotPassed(const CaseReport& report) {
  return report.status == Status::kFail || report.status == Status::kSuiteError;
}

Paint PaintOf(Status status) {
  switch (status) {
    case Status::kPass:
    case Status::kBounded:
      return Paint::kGood;
    case Status::kFail:
    case Status::kSuiteError:
      return Paint::kBad;
    case Status::kUnsupported:
    case Status::kDisabled:
      return Paint::kSoft;
    case Status::kPartial:
    case Status::kWaived:
    case Status::kNotCheckable:
      break;
  }
  return Paint::kWarning;
}

}  // namespace

void Console::ShowStatus(const CaseReport& report) {
  screen_.BeginAgain();
  screen_.Put(StatusName(report.status), PaintOf(report.status));
  out_ << "  " << VisibleLine(report.id);
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
    ShowInFull(report);
  } else if (in_a_line_ < kToldInALine) {
    ++in_a_line_;
    ShowStatus(report);
    for (size_t i = 0; i < broken.size() && report.reason.empty(); ++i)
      out_ << (i == 0 ? ": " : ", ") << broken[i];
    out_ << "\n";
  }
}

void Console::ShowInFull(const CaseReport& report) {
  ShowStatus(report);
  out_ << "\n";
  ShowFindings(report);
  if (!NotPassed(report) && !verbose_) return;
  for (const std::string& line : PrintedLines(report, kPrintedLines))
    screen_.Line("    " + line, Paint::kSoft);
}

void Console::CaseDone(const CaseReport& report) {
  Tell(report);
  Counted(report);
}

void Console::Tell(const CaseReport& report) {
  if (quiet_) return;
  if (verbose_ || (all_ && NotPassed(report))) {
    ShowInFull(report);
    if (verbose_) ShowNotes(report);
  } else if (NotPassed(report)) {
    ShowIfNew(report);
  }
  out_ << std::flush;  // a run that is killed has told what it did
}

void Console::Counted(const CaseReport& report) {
  ++done_;
  partial_ += report.status == Status::kPartial || report.status == Status::kNotCheckable ? 1 : 0;
  failed_ += NotPassed(report) ? 1 : 0;
  if (clock_) pace_.Ended(Now());
  if (quiet_) return;
  if (screen_.display().rewrites) return Bar();
  if (verbose_ || (done_ % std::max<size_t>(50, (total_ + 9) / 10) != 0 && done_ != total_)) return;
  CountLine();
}

void Console::ShowLines(const std::vector<std::string>& lines, size_t most, const char* what) {
  for (size_t i = 0; i < lines.size() && (verbose_ || i < most); ++i)
    screen_.Line(VisibleLine(lines[i]));
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
  if (screen_.display().rewrites) out_ << "\n";
  ShowUnsupported(report);
  for (const std::string& fact : report.facts) screen_.Line(IndentedText(fact, 2));
  for (const std::string& line : RequirementLines(report, verbose_ ? SIZE_MAX : kReasonsAtEnd))
    screen_.Line(VisibleLine(line));
  ShowLines(WarningLines(report, sentence_), 2 * kReasonsAtEnd, "lines of warnings");
}

void Console::ShowFailures(const RunReport& report) {
  for (const FailureLine& line : FailureLines(report, kFailuresAtEnd)) {
    const std::string text = VisibleLine(line.text);
    if (line.kind == FailureLine::Kind::kCommand) {
      screen_.Command(text);
    } else if (line.kind == FailureLine::Kind::kName) {
      screen_.Put(text + "\n", Paint::kBad);
    } else {
      screen_.Line(text);
    }
  }
  const std::vector<AlikeCase> alike = AlikeCases(report, kFailuresAtEnd);
  const size_t shown = all_ ? alike.size() : kAlikeAtEnd;
  for (size_t i = 0; i < alike.size() && i < shown; ++i) {
    out_ << "  also ";
    screen_.Put(StatusName(alike[i].report->status), Paint::kBad);
    out_ << "  " << VisibleLine(alike[i].report->id);
    if (!alike[i].as.empty()) out_ << "  as " << VisibleLine(alike[i].as);
    out_ << "\n";
  }
  if (alike.size() > shown)
    out_ << "and " << alike.size() - shown << " more cases not passed (--all names each)\n";
}

void Console::Finish(const RunReport& report) {
  if (!quiet_) ShowWhatWasAsked(report);
  if (report.cases.size() > 1) ShowFailures(report);
  ShowLines(report.problems, 3 * kReasonsAtEnd, "problems");
  const int code = ExitCode(report);
  screen_.Line(LastLine(report), code == 0   ? Paint::kGood
                                 : code == 4 ? Paint::kWarning
                                             : Paint::kBad);
  out_ << std::flush;
}

}  // namespace shardproof
