#include "conformance/report/report_folder.h"

#include <cerrno>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string_view>
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

bool IsReport(const fs::path& lines) {
  std::error_code error;
  if (!fs::is_regular_file(lines, error)) return false;
  std::ifstream in(lines, std::ios::binary);
  std::string first;
  return in && (!std::getline(in, first) || first.find("\"shardproof_report\"") != first.npos);
}

// report.html and its further pages, report-2.html.
bool IsPage(std::string_view name) {
  constexpr std::string_view kBegin = "report", kEnd = ".html";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
  name = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
  return name.empty() || (name.size() > 1 && name.front() == '-' &&
                          name.find_first_not_of("0123456789", 1) == name.npos);
}

bool IsForReaders(const fs::path& file) {
  static const std::set<std::string> kNames = {"junit.xml", "summary.md", "badge.svg"};
  const std::string name = file.filename().string();
  return kNames.contains(name) || IsPage(name);
}

}  // namespace

// An empty report.jsonl comes in its place: who reads it is told that the run wrote nothing, and
// does not look for shards instead. What else leads to the old file, a link or a copy by links,
// keeps it.
void VoidReport(const fs::path& folder) {
  const fs::path lines = folder / kLines;
  if (!IsReport(lines)) return;
  std::error_code error;
  fs::path empty = lines;
  empty += ".part";
  std::ofstream(empty, std::ios::trunc).close();
  fs::rename(empty, lines, error);
  if (error) fs::remove(lines, error);
  std::vector<fs::path> others;
  for (fs::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error))
    if (IsForReaders(each->path())) others.push_back(each->path());
  for (const fs::path& file : others) fs::remove(file, error);
}

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
