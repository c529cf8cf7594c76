#include "conformance/report/report_file.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "conformance/report/report.h"

namespace shardproof {
namespace {

using nlohmann::json;

class Reader {
 public:
  explicit Reader(std::string file) { report_.file = std::move(file); }

  ReadReport Read(std::istream& in) {
    for (std::string line; std::getline(in, line);) {
      ++line_;
      const json row = json::parse(line, nullptr, false);
      if (!row.is_object()) Bad("this is no line of a report");
      if (ended_) Bad("a line behind the end of the report");
      try {
        Take(row);
      } catch (const json::exception&) {
        Bad("this line lacks what a report has, or has it of another type");
      }
    }
    if (line_ == 0) throw std::invalid_argument(report_.file + " is empty: the run wrote nothing");
    if (!ended_)
      throw std::invalid_argument(report_.file +
                                  " has no last line: the run did not end, and cases are missing");
    return std::move(report_);
  }

 private:
  [[noreturn]] void Bad(const std::string& what) const {
    throw std::invalid_argument(report_.file + ":" + std::to_string(line_) + ": " + what);
  }

  void Take(const json& row) {
    if (line_ == 1) {
      TakeHeader(row);
    } else if (row.contains("end")) {
      ended_ = true;
      if (row.at("end") != report_.cases.size())
        Bad("the last line counts other cases than there are");
      report_.verdict = row.at("verdict");
      report_.problems = row.at("problems").get<std::vector<std::string>>();
    } else {
      const std::string id = row.at("case");
      if (!report_.cases.emplace(id, CaseOf(row)).second) Bad("a second line of case " + id);
    }
  }

  void TakeHeader(const json& row) {
    if (!row.contains("shardproof_report")) Bad("a report begins with \"shardproof_report\"");
    if (row.at("shardproof_report") != 1) Bad("a report of another version than 1");
    report_.impl = row.at("impl");
    report_.fabric = row.at("fabric");
    report_.profile = row.at("profile");
    const std::pair<const char*, std::string*> texts[] = {
        {"version", &report_.version},     {"commit", &report_.commit}, {"engine", &report_.engine},
        {"assurance", &report_.assurance}, {"asked", &report_.asked},   {"shard", &report_.shard},
        {"fault", &report_.fault}};
    for (const auto& [name, text] : texts) *text = row.value(name, "");
    report_.select = OneText(row, "select");
    report_.exclude = OneText(row, "exclude");
    report_.options = OneText(row, "options");
    report_.seed = row.value("seed", uint64_t{1});
    report_.strict = row.value("strict", false);
  }

  // In which order they were given does not matter.
  static std::string OneText(const json& row, const char* name) {
    auto texts = row.value(name, std::vector<std::string>());
    std::sort(texts.begin(), texts.end());
    std::string one;
    for (const std::string& text : texts) one += (one.empty() ? "" : " ") + text;
    return one;
  }

  static ReadCase CaseOf(const json& row) {
    ReadCase c;
    c.status = row.at("status");
    c.replay = row.at("replay");
    for (const std::string id : row.at("judged")) c.requirements[id] = Judgement::kHolds;
    for (const json& each : row.value("bounded", json::array()))
      c.requirements[each.at("requirement")] = Judgement::kWithinBound;
    for (const char* key : {"not_checkable", "not_asked"}) {
      for (const json& each : row.value(key, json::array())) c.open.insert(each.at("requirement"));
    }
    // The suite itself failed: whatever was to be judged there was not.
    if (c.status == StatusName(Status::kSuiteError)) {
      c.requirements[c.status] = Judgement::kBroken;
      c.messages[c.status] = row.value("reason", "");
    }
    if (!row.contains("findings")) return c;
    for (const json& finding : row.at("findings")) Add(finding, &c);
    return c;
  }

  static void Add(const json& finding, ReadCase* c) {
    if (finding.value("warning", false)) return;
    const std::string id = finding.at("requirement");
    const Judgement as = finding.contains("waived_because") ? Judgement::kWaived
                         : finding.contains("follows")      ? Judgement::kFollows
                                                            : Judgement::kBroken;
    Judgement& of = c->requirements.emplace(id, as).first->second;
    of = std::max(of, as);
    if (as != Judgement::kBroken) return;
    c->messages.emplace(id, finding.at("message"));
    c->causes.emplace_back(id, finding.at("message"));
  }

  ReadReport report_;
  size_t line_ = 0;
  bool ended_ = false;
};

// "lib:libmine.so:args" of "lib:/home/me/libmine.so:args": shards may run in other folders.
std::string WithoutFolder(const std::string& impl) {
  constexpr std::string_view kLib = "lib:";
  if (!impl.starts_with(kLib)) return impl;
  const size_t end = std::min(impl.find(':', kLib.size()), impl.size());
  const size_t slash = impl.rfind('/', end);
  if (slash == std::string::npos) return impl;
  return std::string(kLib) + impl.substr(slash + 1);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> RunFields(const ReadReport& report) {
  return {{"version", report.version},
          {"commit", report.commit},
          {"engine", WithoutFolder(report.impl)},
          {"fabric", report.fabric},
          {"profile", report.profile},
          {"asked", report.asked},
          {"select", report.select},
          {"exclude", report.exclude},
          {"options", report.options},
          {"fault", report.fault},
          {"seed", std::to_string(report.seed)},
          {"strict", report.strict ? "yes" : "no"},
          {"assurance", report.assurance}};
}

ReadReport ReadReportFile(const std::filesystem::path& path) {
  const std::filesystem::path file =
      std::filesystem::is_directory(path) ? path / "report.jsonl" : path;
  std::ifstream in(file);
  if (!in) {
    throw std::invalid_argument(file.string() +
                                " cannot be read: a report is a folder of --report, or its "
                                "report.jsonl");
  }
  return Reader(file.string()).Read(in);
}

}  // namespace shardproof
