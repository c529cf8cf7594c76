#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/common/safe_text.h"
#include "conformance/common/version.h"
#include "conformance/report/case_group.h"
#include "conformance/report/console.h"
#include "conformance/report/files.h"
#include "conformance/report/verdict_rule.h"

namespace shardproof {

namespace {

// A case that was judged in part does not let the run pass, unless the user allows that.
enum class JunitKind { kPassed, kFailure, kError, kSkipped };
JunitKind KindOf(Status status, const RunReport& report) {
  switch (status) {
    case Status::kPass:
    case Status::kWaived:
    case Status::kBounded:
      return JunitKind::kPassed;
    case Status::kFail:
      return JunitKind::kFailure;
    case Status::kPartial:
    case Status::kNotCheckable:
      return report.allow_partial ? JunitKind::kSkipped : JunitKind::kFailure;
    case Status::kSuiteError:
      return JunitKind::kError;
    case Status::kUnsupported:
    case Status::kDisabled:
      break;
  }
  return JunitKind::kSkipped;
}

std::string Attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + XmlText(value) + "\"";
}

std::string Seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

// Of some cases.
struct Sums {
  size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = -1;  // -1: not known

  void Add(JunitKind kind, double took) {
    ++tests;
    failures += kind == JunitKind::kFailure ? 1 : 0;
    errors += kind == JunitKind::kError ? 1 : 0;
    skipped += kind == JunitKind::kSkipped ? 1 : 0;
    if (took >= 0) seconds = std::max(seconds, 0.0) + took;
  }
  std::string Text() const {
    const std::string text = Attribute("tests", std::to_string(tests)) +
                             Attribute("failures", std::to_string(failures)) +
                             Attribute("errors", std::to_string(errors)) +
                             Attribute("skipped", std::to_string(skipped));
    return seconds < 0 ? text : text + Attribute("time", Seconds(seconds));
  }
};

std::string WhenText(const RunReport& report) {
  if (report.began.empty()) return "";
  return Attribute("timestamp", report.began.substr(0, report.began.find('Z')));
}

// Many readers look at those of a suite alone, so each has them.
std::string Properties(const RunReport& report) {
  const std::pair<const char*, std::string> rows[] = {
      {"shardproof", VersionText()},
      {"impl", report.impl},
      {"engine", report.engine},
      {"fabric", report.fabric},
      {"profile", report.profile},
      {"asked", report.asked},
      {"shard", report.shard},
      {"fault", report.fault},
      {"seed", std::to_string(report.seed)},
      {"strict", report.strict ? "true" : "false"},
      {"assurance", report.assurance},
      {"verdict", VerdictName(Decide(report).verdict)}};
  std::string text = "    <properties>\n";
  for (const auto& [name, value] : rows) {
    if (value.empty()) continue;
    text += "      <property" + Attribute("name", name) + Attribute("value", value) + "/>\n";
  }
  return text + "    </properties>\n";
}

// What stands beside the result: warnings, notes, and what the engine printed.
std::string Aside(const CaseReport& c, const std::string& warnings) {
  std::string text = warnings;
  for (const std::string& note : c.notes) text += "note: " + note + "\n";
  for (const std::string& line : PrintedLines(c, SIZE_MAX)) text += line + "\n";
  return text.empty() ? "" : "<system-out>" + XmlText(text) + "</system-out>";
}

std::string Element(const CaseReport& c, const std::string& suite, const RunReport& report,
                    const Sentence& sentence) {
  std::string text = "    <testcase" + Attribute("classname", "shardproof." + suite) +
                     Attribute("name", c.id) +
                     (c.seconds < 0 ? "" : Attribute("time", Seconds(c.seconds))) + ">";
  std::string body, warnings;
  for (const ToldFinding& told : TellFindings(c, report.all_findings))
    (Warns(*told.row) ? warnings : body) += FindingText(told, c, sentence);
  if (body.empty()) body = c.status == Status::kPartial ? OpenText(c) : c.reason;
  const JunitKind kind = KindOf(c.status, report);
  if (kind == JunitKind::kFailure) {
    text += "<failure" + Attribute("type", StatusName(c.status)) +
            Attribute("message", body.substr(0, body.find('\n'))) + ">" + XmlText(body) +
            "</failure>";
  } else if (kind == JunitKind::kError) {
    text += "<error" + Attribute("message", c.reason) + "/>";
  } else if (kind == JunitKind::kSkipped) {
    text +=
        "<skipped" + Attribute("message", std::string(StatusName(c.status)) + ": " + body) + "/>";
  }
  return text + Aside(c, warnings) + "</testcase>\n";
}

std::string ProblemElement(size_t number, const std::string& message) {
  return "    <testcase" + Attribute("classname", "shardproof.problems") +
         Attribute("name", "problem " + std::to_string(number)) + "><failure" +
         Attribute("type", "problem") + Attribute("message", message) + "/></testcase>\n";
}

struct Suite {
  Sums sums;
  std::string elements;
};

std::string NameOf(const CaseReport& c) { return c.id == kEngineRow ? "engine" : CaseGroup(c.id); }

}  // namespace

std::string Junit(const RunReport& report, const Sentence& sentence) {
  std::map<std::string, Suite> suites;
  Sums all;
  for (const CaseReport& c : report.cases) {
    const std::string name = NameOf(c);
    const JunitKind kind = KindOf(c.status, report);
    suites[name].sums.Add(kind, c.seconds);
    suites[name].elements += Element(c, name, report, sentence);
    all.Add(kind, c.seconds);
  }
  // A problem of a file that the user gave turns the run red without a case: it is a failure too.
  for (size_t i = 0; i < report.problems.size(); ++i) {
    suites["problems"].sums.Add(JunitKind::kFailure, -1);
    suites["problems"].elements += ProblemElement(i + 1, report.problems[i]);
    all.Add(JunitKind::kFailure, -1);
  }
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
                     Attribute("name", "shardproof " + report.impl + " on " + report.fabric) +
                     all.Text() + WhenText(report) + ">\n";
  for (const auto& [name, suite] : suites)
    text += "  <testsuite" + Attribute("name", name) + suite.sums.Text() + WhenText(report) +
            ">\n" + Properties(report) + suite.elements + "  </testsuite>\n";
  return text + "</testsuites>\n";
}

}  // namespace shardproof
