// service_faults_test: does the suite name the right requirement for one wrong service call of a
// good engine?
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/runner/lab/fault_lab.h"
#include "conformance/runner/lab/service_fault_rows.h"

namespace shardproof {
namespace {

std::string Reported(const CheckResult& result) {
  std::map<std::string, std::string> first;
  for (const Finding& finding : result.findings)
    first.try_emplace(finding.requirement, finding.message);
  std::string text;
  for (const auto& [requirement, message] : first)
    text += "\n  " + requirement + " " + message.substr(0, 240);
  return text.empty() ? "nothing" : text;
}

class ServiceFaults : public testing::TestWithParam<const char*> {};

TEST_P(ServiceFaults, AreReportedUnderTheRightRequirement) {
  const Plugin plugin("builtin:reference");
  const FaultLab lab(GetParam(), plugin, testing::TempDir() + "service_faults");
  RunData good = lab.Run(std::nullopt, 1, TimingPolicy::kRandom);
  ASSERT_EQ(Reported(lab.Judge(good)), "nothing") << "without a fault";
  for (const FaultRow& row : ServiceFaultRows()) {
    if (std::string(row.spec) != GetParam()) continue;
    const auto fault = lab.Find(row.rank, row.call, row.where, row.nth, row.action, row.amount);
    if (!fault) {
      ADD_FAILURE() << row.what << ": the good run has no such call";
      continue;
    }
    const CheckResult result = lab.JudgeFault(*fault);
    const bool found =
        std::any_of(result.findings.begin(), result.findings.end(),
                    [&](const Finding& f) { return f.requirement == row.requirement; });
    std::cout << row.requirement << (found ? " found   " : " MISSING ") << row.what << "   "
              << row.spec << "  " << FaultText(*fault) << '\n';
    EXPECT_TRUE(found) << row.what << ": " << row.requirement << " is not reported but "
                       << Reported(result) << "\n  run --case " << row.spec << " --fault "
                       << FaultText(*fault);
  }
}

std::vector<const char*> Specs() {
  std::vector<const char*> specs;
  for (const FaultRow& row : ServiceFaultRows()) {
    if (std::find(specs.begin(), specs.end(), row.spec) == specs.end()) specs.push_back(row.spec);
  }
  return specs;
}

std::string NameOf(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '='; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, ServiceFaults, testing::ValuesIn(Specs()), NameOf);

TEST(ServiceFaultTable, CoversEveryActionAndMostCalls) {
  std::map<std::string, int> by_requirement;
  std::set<std::string> calls;
  std::set<Fault::Action> actions;
  for (const FaultRow& row : ServiceFaultRows()) {
    ++by_requirement[row.requirement];
    calls.insert(row.call);
    actions.insert(row.action);
  }
  for (const auto& [requirement, n] : by_requirement) std::cout << requirement << ' ' << n << '\n';
  EXPECT_GE(ServiceFaultRows().size(), 30u);
  EXPECT_GE(calls.size(), 14u);
  EXPECT_EQ(actions.size(), 5u);
}

}  // namespace
}  // namespace shardproof
