#include "conformance/runner/reporter.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <utility>

#include "conformance/common/read_file.h"
#include "conformance/common/safe_text.h"
#include "conformance/report/badge.h"
#include "conformance/report/html/page.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/runner/reporting.h"

namespace shardproof {

namespace {

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &utc)};
}

}  // namespace

WaiverFile WaiversOf(const Options& options) {
  if (options.waivers.empty()) return {};
  const std::optional<std::string> text = ReadFile(options.waivers);
  if (!text)
    throw std::invalid_argument("--waivers " + options.waivers + ": it cannot be read (" +
                                std::strerror(errno) + ")");
  return ParseWaivers(*text, options.waivers);
}

Reporter::Reporter(const Options& options, RunReport report, size_t total, std::ostream& out,
                   bool terminal)
    : waivers_(WaiversOf(options)),
      report_(std::move(report)),
      total_(total),
      console_(out, terminal, options.verbose, total, Sentences(), options.all_findings,
               options.quiet),
      max_fail_(options.max_fail) {
  if (!options.report.empty()) {
    const auto pages = [](const RunReport& all, const Sentence& sentence) {
      auto files = HtmlPages(all, sentence);
      files.emplace_back("badge.svg", Badge(all));
      return files;
    };
    folder_.emplace(options.report, report_, Sentences(), pages);
  }
}

void Reporter::CaseDone(size_t place, CaseReport report) {
  WaiveFindings(report, waivers_.waivers, Today());
  const CaseReport& row = cases_[place] = std::move(report);
  failed_ += row.status == Status::kFail || row.status == Status::kSuiteError ? 1 : 0;
  TellInOrder(place);
  console_.Counted(row);
  if (!folder_ || !broken_.empty()) return;
  try {
    folder_->CaseDone(row, [this] {
      RunReport so_far = report_;
      for (const auto& [at, c] : cases_) so_far.cases.push_back(c);
      return so_far;
    });
  } catch (const std::exception& error) {
    broken_ = error.what();
  }
}

void Reporter::TellInOrder(size_t place) {
  if (place >= total_) return console_.Tell(cases_.at(place));
  for (auto next = cases_.find(told_); next != cases_.end() && next->first == told_;
       ++next, ++told_)
    console_.Tell(next->second);
}

bool Reporter::Enough() const { return max_fail_ > 0 && failed_ >= static_cast<size_t>(max_fail_); }

int Reporter::Finish() {
  if (Enough() && cases_.size() < total_) {
    report_.problems.push_back("--max-fail " + std::to_string(max_fail_) + ": of " +
                               std::to_string(total_) + " cases " + std::to_string(cases_.size()) +
                               " were run");
  }
  for (auto& [place, c] : cases_) {
    if (place >= told_ && place < total_) console_.Tell(c);  // behind one that never ended
  }
  for (auto& [place, c] : cases_) report_.cases.push_back(std::move(c));
  cases_.clear();
  ApplyWaivers(report_, waivers_, Today());
  try {
    if (folder_ && broken_.empty()) folder_->Finish(report_);
  } catch (const std::exception& error) {
    broken_ = error.what();
  }
  console_.Finish(report_);
  if (broken_.empty()) return ExitCode(report_);
  std::cerr << "shardproof: the suite failed: " << IndentedText(broken_) << "\n";
  return 2;
}

}  // namespace shardproof
