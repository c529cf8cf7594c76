#include "conformance/runner/reporter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iostream>
#include <iterator>
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
      began_(std::chrono::steady_clock::now()),
      console_(out, DisplayOf(options.color, terminal), options.verbose, total, Sentences(),
               options.all_findings, options.quiet, [this] { return Elapsed(); }),
      max_fail_(options.max_fail),
      time_budget_(options.time_budget) {
  if (!options.report.empty()) {
    const auto pages = [](const RunReport& all, const Sentence& sentence) {
      auto files = HtmlPages(all, sentence, LessonsOfRequirements());
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

double Reporter::Elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

bool Reporter::Enough() {
  const bool over = time_budget_ > 0 && Elapsed() >= time_budget_;
  out_of_time_ = out_of_time_ || (over && !cases_.empty());
  return out_of_time_ || (max_fail_ > 0 && failed_ >= static_cast<size_t>(max_fail_));
}

bool Reporter::NothingTaken() const {
  return std::all_of(cases_.begin(), cases_.end(), [](const auto& one) {
    const CaseReport& c = one.second;
    return c.status == Status::kUnsupported || (!c.legal && c.status == Status::kPass);
  });
}

void Reporter::TellWhatWasLeftOut() {
  const auto ran = static_cast<size_t>(std::distance(cases_.begin(), cases_.lower_bound(total_)));
  const std::string counts = "of " + std::to_string(total_) + " cases " + std::to_string(ran) +
                             (ran == 1 ? " was" : " were") + " run";
  if (max_fail_ > 0 && failed_ >= static_cast<size_t>(max_fail_)) {
    if (ran < total_)
      report_.problems.push_back("--max-fail " + std::to_string(max_fail_) + ": " + counts);
  } else if (out_of_time_ && ran < total_) {
    report_.whole = false;
    report_.cut_short = "--time-budget: " + counts;
  }
}

int Reporter::Finish() {
  TellWhatWasLeftOut();
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
