#include "conformance/checks/base/one_row.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

using Kind = NotCheckable::Kind;

TEST(OneRow, AFindingOverMissingOverJudgedOverNotAsked) {
  CheckResult result;
  result.findings.emplace_back().requirement = "GE-01";
  result.judged = {"GE-02", "GE-03"};
  for (const char* id : {"GE-01", "GE-02", "GE-03", "GE-04"})
    result.not_checkable.push_back({id, "not asked", Kind::kNotAsked});
  for (const char* id : {"GE-01", "GE-02", "GE-02"})
    result.not_checkable.push_back({id, "missing", Kind::kMissing});
  for (int twice = 0; twice < 2; ++twice) {
    KeepOneRowEach(result);
    EXPECT_EQ(result.judged, (std::set<std::string>{"GE-01", "GE-03"}));
    ASSERT_EQ(result.not_checkable.size(), 2u);
    EXPECT_EQ(result.not_checkable[0].requirement, "GE-02");
    EXPECT_EQ(result.not_checkable[0].kind, Kind::kMissing);
    EXPECT_EQ(result.not_checkable[1].requirement, "GE-04");
    EXPECT_EQ(result.not_checkable[1].kind, Kind::kNotAsked);
  }
}

}  // namespace
}  // namespace shardproof
