#include "conformance/report/report_folder.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "conformance/report/files.h"

namespace shardproof {

namespace {

namespace fs = std::filesystem;
constexpr const char* kLines = "report.jsonl";

[[noreturn]] void CannotWrite(const fs::path& path, const std::string& why) {
  throw std::runtime_error("cannot write " + path.string() + ": " + why);
}

// With one error more, whatever the cases say.
RunReport NotEnded(RunReport report) {
  CaseReport& row = report.cases.emplace_back();
  row.id = "the run";
  row.status = Status::kSuiteError;
  row.reason =
      "it has not ended: if nothing is running, it was killed. report.jsonl has every case that "
      "ended";
  return report;
}

}  // namespace

ReportFolder::ReportFolder(const std::string& folder, const RunReport& header, Sentence sentence,
                           MoreFiles more)
    : folder_(folder), sentence_(std::move(sentence)), more_(std::move(more)) {
  try {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (!fs::is_directory(folder_))
      CannotWrite(folder_, error ? error.message() : "it is no folder");
    WriteWhole(kLines, HeaderLine(header));
    WriteForReaders(NotEnded(header));
    lines_.open(folder_ / kLines, std::ios::binary | std::ios::app);
    if (!lines_) CannotWrite(folder_ / kLines, std::strerror(errno));
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument("--report " + folder + ": " + error.what());
  }
}

void ReportFolder::CaseDone(const CaseReport& report, const std::function<RunReport()>& so_far) {
  lines_ << CaseLine(report) << std::flush;
  if (!lines_) CannotWrite(folder_ / kLines, std::strerror(errno));
  if (++done_ % kCasesPerWrite == 0) WriteForReaders(NotEnded(so_far()));
}

void ReportFolder::Finish(const RunReport& report) {
  lines_.close();
  WriteWhole(kLines, JsonLines(report));
  WriteForReaders(report);
}

void ReportFolder::WriteForReaders(const RunReport& report) const {
  WriteWhole("junit.xml", Junit(report, sentence_));
  WriteWhole("summary.md", SummaryMarkdown(report, sentence_));
  if (!more_) return;
  for (const auto& [name, text] : more_(report, sentence_)) WriteWhole(name, text);
}

void ReportFolder::WriteWhole(const std::string& name, const std::string& text) const {
  const fs::path path = folder_ / name, aside = folder_ / (name + ".part");
  errno = 0;
  std::ofstream out(aside, std::ios::binary);
  out << text;
  out.close();
  if (!out) CannotWrite(aside, std::strerror(errno));
  std::error_code error;
  fs::rename(aside, path, error);
  if (error) CannotWrite(path, error.message());
}

}  // namespace shardproof
