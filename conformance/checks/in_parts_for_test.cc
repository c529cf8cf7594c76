#include "conformance/checks/in_parts_for_test.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <utility>

#include "conformance/checks/check_all.h"
#include "conformance/checks/in_parts.h"
#include "conformance/checks/parts/part_reader.h"
#include "conformance/checks/testing/listed_rows.h"

namespace shardproof {
namespace {

using Row = std::tuple<std::string, std::string, int>;
struct Said {
  bool finds = false;
  std::set<std::string> judged;
  std::set<Row> rows;
  std::vector<std::string> notes;
  bool operator==(const Said&) const = default;
};
Said SaidBy(const CheckResult& result) {
  Said said{!result.findings.empty(), result.judged, {}, result.notes};
  for (const NotCheckable& row : result.not_checkable)
    said.rows.emplace(row.requirement, row.why, static_cast<int>(row.kind));
  return said;
}
std::string Text(const Said& said) {
  std::string text = said.finds ? "finds" : "finds nothing";
  for (const std::string& id : said.judged) text += " " + id;
  for (const auto& [id, why, kind] : said.rows) text += "\n" + id + ": " + why;
  for (const std::string& note : said.notes) text += "\n" + note;
  return text;
}

}  // namespace

void ExpectAlike(const std::vector<Trace>& run, int64_t least, InParts* got) {
  *got = {};
  parts::PartReader reader(ListRows(run), {.least = least, .carried = 0});
  PartsVerdict verdict;
  for (std::vector<Trace> part = reader.Next(); !part.empty(); part = reader.Next())
    verdict.Add(CheckPart(std::move(part)));
  got->parts = reader.parts();
  got->whole = reader.whole().empty() ? verdict.whole() : reader.whole();
  if (!got->whole.empty()) return;
  const Said want = SaidBy(CheckAll(Run{nullptr, run, {}, {}}));
  const Said said = SaidBy(std::move(verdict).Conclude(reader.Ends(), {}));
  EXPECT_EQ(said, want) << Text(said) << "\n-- whole --\n" << Text(want);
}

std::string WholeOrAlike(Trace trace) {
  const std::vector<Trace> run = {std::move(trace)};
  const std::vector<EngineOutcome> ended(1);
  parts::PartReader reader(ListRows(run), {.least = 1, .carried = 0});
  PartsVerdict verdict;
  for (std::vector<Trace> part = reader.Next(); !part.empty(); part = reader.Next())
    verdict.Add(CheckPart(std::move(part)));
  if (!reader.whole().empty()) return reader.whole();
  if (!verdict.whole().empty()) return verdict.whole();
  EXPECT_GT(reader.parts(), 2);
  const Said want = SaidBy(CheckAll(shardproof::Run{nullptr, run, ended, {}}));
  const Said said = SaidBy(std::move(verdict).Conclude(reader.Ends(), ended));
  EXPECT_EQ(said, want) << Text(said) << "\n-- whole --\n" << Text(want);
  return "";
}

}  // namespace shardproof
