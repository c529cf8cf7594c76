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
      std::vector<int64_t>& known =
          oracle.calls[size_t(exchange.call)].expert_rows[{(sample + shift) % samples, value}];
      // Of parts of the sequence those of all ranks of tp one after the other.
      const int64_t tp = facts.spec().model.sequence_parallel ? facts.spec().model.tp : 1;
      known.resize(rows.size() * static_cast<size_t>(tp));
      std::copy(rows.begin(), rows.end(),
                known.begin() + facts.Place(exchange.rank).tp * static_cast<int64_t>(rows.size()));
    }
  }
  return oracle;
}

std::string FoundOf(const Case& c, const std::function<void(OracleRun&)>& edit,
                    bool of_other_microbatch = false) {
  ScheduleRun made = RunSchedule(c);
  const Analysis without(made.run);
  OracleRun oracle = OracleOf(without, of_other_microbatch ? 4 : 0);
  edit(oracle);
  made.run.oracles = {&oracle};
  const Analysis a(made.run);
  return FoundIn(CheckSchedule(a));
}

std::string Found(const std::function<void(OracleRun&)>& edit, bool of_other_microbatch = false) {
  return FoundOf(ScheduleCase(4, 2), edit, of_other_microbatch);
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

// Each rank of tp against what the router chose for its part of the sequence.
TEST(Routing, RowsOfAPartOfTheSequence) {
  const Case c = ScheduleCase(4, 4, [](InstanceSpec& spec) {
    spec.tp = 2;
    spec.tensor_parallel = spec.sequence_parallel = true;
    spec.overlap_moe = false;
  });
  const std::string as_chosen = FoundOf(c, [](OracleRun&) {});
  EXPECT_EQ(as_chosen.find("EP-28"), std::string::npos) << as_chosen;
  for (const bool second : {false, true}) {
    const std::string found = FoundOf(c, [&](OracleRun& oracle) {
      for (auto& [place, rows] : oracle.calls[1].expert_rows)
        rows[second ? rows.size() / 2 : 0] += 1000;
    });
    EXPECT_NE(found.find("EP-28"), std::string::npos) << "second part: " << second;
  }
}

TEST(Routing, TheNumbersOfAnotherMicrobatch) {
  const std::string found = Found([](OracleRun&) {}, true);
  EXPECT_EQ(found, "EP-27");
}

}  // namespace
}  // namespace shardproof
