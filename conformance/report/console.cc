#include "conformance/report/console.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shardproof {

Console::Console(std::ostream& out, bool terminal, bool verbose, size_t total, Sentence sentence)
    : out_(out),
      terminal_(terminal),
      verbose_(verbose),
      total_(total),
      sentence_(std::move(sentence)) {}

std::string FindingText(const Finding& finding, const CaseReport& report,
                        const Sentence& sentence) {
  std::string text = finding.requirement + "  " + sentence(finding.requirement) + "\n";
  const auto line = [&text](const char* name, const std::string& value) {
    if (!value.empty()) text += std::string("    ") + name + value + "\n";
  };
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
  return text;
}

void Console::Bar() {
  constexpr size_t kWidth = 40;
  const size_t full = total_ == 0 ? kWidth : done_ * kWidth / total_;
  out_ << "\r[" << std::string(full, '=') << std::string(kWidth - full, ' ') << "] " << done_ << "/"
       << total_;
  if (failed_ > 0) out_ << ", " << failed_ << " not passed";
  out_ << std::flush;
}

// The first finding of each requirement, earliest event first: what comes later is often its
// consequence.
void Console::ShowFindings(const CaseReport& report) {
  std::vector<const Finding*> first;
  std::map<std::string, int> count;
  for (const ReportedFinding& row : report.findings) {
    if (!row.waived_because.empty()) continue;
    if (count[row.finding.requirement]++ == 0) first.push_back(&row.finding);
  }
  std::stable_sort(first.begin(), first.end(),
                   [](const Finding* a, const Finding* b) { return a->event < b->event; });
  for (const Finding* finding : first) {
    out_ << "  " << FindingText(*finding, report, sentence_);
    const int more = count[finding->requirement] - 1;
    if (more > 0)
      out_ << "    and " << more << " more of " << finding->requirement
           << " (--report DIR lists all)\n";
  }
}

void Console::CaseDone(const CaseReport& report) {
  ++done_;
  const bool bad = report.status == Status::kFail || report.status == Status::kSuiteError;
  failed_ += bad ? 1 : 0;
  if (bad || verbose_) {
    if (terminal_) out_ << "\r\033[K";
    out_ << StatusName(report.status) << "  " << report.id;
    if (!report.reason.empty()) out_ << "  (" << report.reason << ")";
    out_ << "\n";
    ShowFindings(report);
    out_ << std::flush;  // a run that is killed has told what it did
  }
  if (terminal_) {
    Bar();
  } else if (!verbose_ && (done_ % 50 == 0 || done_ == total_)) {
    out_ << done_ << " of " << total_ << " cases judged, " << failed_ << " not passed\n"
         << std::flush;
  }
}

void Console::Finish(const RunReport& report) {
  if (terminal_) out_ << "\n";
  std::map<std::string, int> unsupported;
  for (const CaseReport& c : report.cases) {
    if (c.status == Status::kUnsupported) ++unsupported[c.reason];
  }
  for (const auto& [reason, n] : unsupported)
    out_ << "unsupported (" << n << "): " << reason << "\n";
  for (const std::string& fact : report.facts) out_ << fact << "\n";
  for (const std::string& problem : report.problems) out_ << "waivers: " << problem << "\n";
  out_ << LastLine(report) << "\n" << std::flush;
}

}  // namespace shardproof
