// hostile_page FOLDER: report.html of a run whose every text would be markup or script, if it were
// let.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "conformance/report/html/page.h"

namespace {

using namespace shardproof;  // NOLINT: a program of one file

// Whoever runs leaves a mark on the document.
const char* const kHostile =
    "</script><script>document.documentElement.dataset.pwned=1</script>"
    "<img src=x onerror=\"document.documentElement.dataset.pwned=2\">"
    "\" onmouseover=\"document.documentElement.dataset.pwned=3\" '"
    "javascript:document.documentElement.dataset.pwned=4 <!-- ]]> \\u003c \x1b[2J \u202e";

CaseReport HostileCase() {
  CaseReport c;
  c.id = std::string("w2.zero3.") + kHostile;
  c.status = Status::kFail;
  c.reason = c.replay = kHostile;
  c.judged = c.notes = {kHostile};
  Finding finding;
  finding.requirement = kHostile;
  finding.rank = finding.step = 0;
  finding.event = 1;
  for (std::string* text :
       {&finding.stream, &finding.operation, &finding.expected, &finding.seen, &finding.message})
    *text = kHostile;
  c.findings = {{finding, "", false}, {finding, kHostile, false}};
  std::string name;
  for (const char* at = kHostile; *at != '\0'; ++at) {
    if (*at == '"' || *at == '\\') name += '\\';
    if (*at != '\x1b') name += *at;
  }
  c.drawings[0] = R"({"lanes":[[0,")" + name + R"("]],"nodes":[[0,1,0,1,")" + name + "\",\"" +
                  name + R"("]],"links":[[0,0,2]],"memory":{"rank":0,"events":2,"finding":-1,)" +
                  R"("peak":[1,2048],"at_peak":[2048],"at_finding":[],"purposes":[[")" + name +
                  R"(",[0,2048]]]}})";
  c.not_checkable = {{kHostile, kHostile}};
  return c;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 3;
  RunReport report;
  report.impl = report.fabric = report.profile = report.assurance = kHostile;
  report.facts = report.problems = {kHostile};
  report.cases = {HostileCase()};
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const auto& [name, text] :
       HtmlPages(report, [](std::string_view) { return std::string(kHostile); }))
    std::ofstream(folder / name, std::ios::binary) << text;
  return 0;
}
