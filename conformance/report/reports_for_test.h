// reports_for_test.h: small reports.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "conformance/report/report.h"

namespace shardproof {

inline std::string SentenceOf(std::string_view id) { return "sentence of " + std::string(id); }

inline CaseReport Failing(const std::string& id) {
  CaseReport c;
  c.id = id;
  c.status = Status::kFail;
  c.judged = {"FS-05", "GE-05"};
  c.replay = "shardproof replay --case " + id;
  Finding f;
  f.requirement = "FS-05";
  f.rank = 3;
  f.event = 41;
  f.step = 1;
  f.stream = "reduce";
  f.operation = "reduce_scatter of grad on dp_cp";
  f.expected = "one reduction";
  f.seen = "two";
  f.message = "layers.0 is reduced twice";
  c.findings.push_back({f, ""});
  return c;
}
inline CaseReport Passing(const std::string& id) {
  CaseReport c;
  c.id = id;
  c.status = Status::kPass;
  c.judged = {"FS-05"};
  return c;
}
inline CaseReport Unsupported(const std::string& id) {
  CaseReport c;
  c.id = id;
  c.status = Status::kUnsupported;
  return c;
}
inline RunReport Report(std::vector<CaseReport> cases) {
  RunReport report;
  report.impl = "lib:<x>";
  report.fabric = "sim";
  report.profile = "core";
  report.cases = std::move(cases);
  return report;
}

// Of what in text.
inline size_t Times(const std::string& what, const std::string& text) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

}  // namespace shardproof
