// Rows that are sent against those that the router chose, as an oracle knows them.
#include <gtest/gtest.h>

#include "conformance/checks/schedule/schedule.h"
#include "conformance/checks/testing/mini_schedule.h"
#include "conformance/checks/testing/shown.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {
namespace {

constexpr std::string_view kSendCounts = ".send_counts";

// The value that counts rows by expert, of an exchange on the way to the experts; empty: of others.
std::string ValueOf(const Analysis& a, const schedule::Exchange& exchange) {
  const InstanceFacts& facts = a.Facts(size_t(exchange.instance));
  const spf_node& node = facts.Node(exchange.node, exchange.rank);
  if (exchange.backward || exchange.counts || node.send_counts < 0) return "";
  std::string name = facts.model().Tables(facts.Place(exchange.rank)).values[node.send_counts].name;
  const size_t at = name.find(kSendCounts);
  return at == std::string::npos ? "" : name.replace(at, kSendCounts.size(), ".expert_counts");
}

// What an oracle would say if the router had chosen what the ranks sent: all rows of a member go to
// its first expert. shift: of so many samples further on instead.
OracleRun OracleOf(const Analysis& a, int64_t shift) {
  OracleRun oracle;
  const InstanceFacts& facts = a.Facts(0);
  oracle.calls.resize(facts.calls().size());
  const int64_t samples = int64_t{DpCpSize(facts.spec())} * facts.spec().microbatches;
  for (const auto& of_rank : schedule::FindExchanges(a)) {
    for (const schedule::Exchange& exchange : of_rank) {
      const std::string value = ValueOf(a, exchange);
      if (value.empty()) continue;
      const auto each = facts.spec().model.moe.experts / static_cast<int64_t>(exchange.send.size());
      std::vector<int64_t> rows;
      for (const int64_t elements : exchange.send) {
        rows.push_back(elements / exchange.row);
        rows.insert(rows.end(), static_cast<size_t>(each - 1), 0);
      }
      const int64_t sample =
          int64_t{exchange.microbatch} * DpCpSize(facts.spec()) + facts.DataRank(exchange.rank);
      oracle.calls[size_t(exchange.call)].expert_rows[{(sample + shift) % samples, value}] = rows;
    }
  }
  return oracle;
}

std::string Found(const std::function<void(OracleRun&)>& edit, bool of_other_microbatch = false) {
  ScheduleRun made = RunSchedule(ScheduleCase(4, 2));
  const Analysis without(made.run);
  OracleRun oracle = OracleOf(without, of_other_microbatch ? 4 : 0);
  edit(oracle);
  made.run.oracles = {&oracle};
  const Analysis a(made.run);
  return FoundIn(CheckSchedule(a));
}

TEST(Routing, RowsThatTheRouterChose) {
  EXPECT_EQ(Found([](OracleRun& oracle) { EXPECT_FALSE(oracle.calls[1].expert_rows.empty()); }),
            "");
}

TEST(Routing, OtherNumbersThanTheRouterChose) {
  EXPECT_EQ(Found([](OracleRun& oracle) {
              for (auto& [place, rows] : oracle.calls[1].expert_rows) rows[0] += 1000;
            }),
            "EP-28");
}

TEST(Routing, TheNumbersOfAnotherMicrobatch) {
  const std::string found = Found([](OracleRun&) {}, true);
  EXPECT_EQ(found, "EP-27");
}

}  // namespace
}  // namespace shardproof
