// verdict, badge, waive: of a report, or of the reports of all shards.
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "conformance/common/safe_text.h"
#include "conformance/report/badge.h"
#include "conformance/report/report_shards.h"
#include "conformance/report/waiver_draft.h"
#include "conformance/runner/command/run_command.h"

namespace shardproof {

namespace {

void Write(const std::string& text, const std::string& file) {
  if (file.empty()) {
    std::cout << text;
    return;
  }
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out)
    throw std::invalid_argument("--output " + file + ": it cannot be written (" +
                                std::strerror(errno) + ")");
}

std::string InDays(int days) {
  constexpr std::time_t kDay = 24 * 60 * 60;
  const std::time_t then = std::time(nullptr) + days * kDay;
  std::tm utc{};
  gmtime_r(&then, &utc);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &utc)};
}

}  // namespace

int VerdictCommand(const Options& options) {
  const ReadReport report = ReadReports(options.target);
  std::cout << VisibleLine(VerdictLine(report)) << "\n";
  return ExitCode(VerdictNamed(report.verdict), options.allow_partial);
}

int BadgeCommand(const Options& options) {
  Write(Badge(ReadReports(options.target)), options.output);
  return 0;
}

int WaiveCommand(const Options& options) {
  constexpr int kDays = 90;
  Write(WaiverDraft(ReadReports(options.target), InDays(kDays)), options.output);
  return 0;
}

}  // namespace shardproof
