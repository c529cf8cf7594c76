// waivers.cc: is every text a list of waivers, or refused in words? And is every list applied?
#include "conformance/report/waivers.h"

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

shardproof::RunReport OneFailure() {
  shardproof::CaseReport c;
  c.id = "w8.zero3";
  c.status = shardproof::Status::kFail;
  c.judged = {"FS-05"};
  shardproof::ReportedFinding row;
  row.finding.requirement = "FS-05";
  row.finding.message = "layers.0 is reduced twice";
  c.findings.push_back(row);
  shardproof::RunReport report;
  report.cases.push_back(c);
  return report;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto waivers = shardproof::ParseWaivers(text, "waivers.toml");
    shardproof::RunReport report = OneFailure();
    shardproof::ApplyWaivers(report, waivers, "2026-11-21");
    const bool waived = report.cases[0].status == shardproof::Status::kWaived;
    if (waived && waivers.waivers.empty()) std::abort();
  } catch (const std::invalid_argument& error) {
    if (!std::string_view(error.what()).starts_with("waivers.toml:")) {
      std::cerr << "refused without a place: " << error.what() << "\n";
      std::abort();
    }
  }
  return 0;
}
