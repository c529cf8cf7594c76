#include "conformance/checks/testing/shown.h"

#include <gtest/gtest.h>

#include <utility>

namespace shardproof {

void Show(const CheckResult& result) {
  for (const Finding& finding : result.findings)
    testing::Test::RecordProperty("broken " + finding.requirement, 1);
  if (!result.findings.empty()) return;
  for (const std::string& id : result.judged) testing::Test::RecordProperty("kept " + id, 1);
}

CheckResult Shown(CheckResult result) {
  Show(result);
  return result;
}

}  // namespace shardproof
