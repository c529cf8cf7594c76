#include "conformance/report/perfetto/perfetto.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

using nlohmann::json;

Trace Step(int rank) {
  TraceBuilder t(rank, 2);
  const int dp = t.Group("dp_cp", {0, 1});
  const int main = t.Stream("main"), comm = t.Stream("comm\x1b");
  if (rank == 1) t.Alloc(main, 8);  // so that the ranks are not in step by themselves
  const int full = t.Alloc(main, 64);
  const int ready = t.EventCreate();
  t.Collective(SPF_ALL_GATHER, dp, comm, 8, {Writes(full, 0, 64)});
  t.Record(ready, comm);
  t.Wait(ready, main);
  t.Free(full, main);
  return t.Done();
}

std::vector<json> Rows(const json& all, const std::string& phase) {
  std::vector<json> rows;
  for (const json& row : all["traceEvents"])
    if (row["ph"] == phase) rows.push_back(row);
  return rows;
}

TEST(Perfetto, EachEventIsOneSliceOfItsTrack) {
  const std::vector<Trace> traces = {Step(0), Step(1)};
  const json all = json::parse(PerfettoJson(traces));
  std::map<int, size_t> slices;
  std::map<std::pair<int, int>, int64_t> free_from;  // by track: no two overlap
  for (const json& row : Rows(all, "X")) {
    const int rank = row["pid"];
    const Event& event = traces[size_t(rank)].events[row["args"]["event"].get<size_t>()];
    EXPECT_EQ(row["tid"], event.stream + 1);
    EXPECT_EQ(row["args"]["event"], slices[rank]++);
    int64_t& free = free_from[{rank, row["tid"]}];
    EXPECT_GE(row["ts"].get<int64_t>(), free);
    free = row["ts"].get<int64_t>() + row["dur"].get<int64_t>();
  }
  for (const Trace& trace : traces) EXPECT_EQ(slices[trace.rank], trace.events.size());
}

// Each end of a flow lies within one slice, of the same track.
TEST(Perfetto, FlowsLeadFromRecordsToWaitsAndJoinCollectives) {
  const json all = json::parse(PerfettoJson({Step(0), Step(1)}));
  std::map<int64_t, std::vector<std::string>> ends;
  std::map<std::string, std::set<int64_t>> flows;
  for (const char* phase : {"s", "t", "f"}) {
    for (const json& end : Rows(all, phase)) {
      size_t within = 0;
      for (const json& slice : Rows(all, "X")) {
        if (slice["pid"] != end["pid"] || slice["tid"] != end["tid"]) continue;
        const int64_t from = slice["ts"], at = end["ts"];
        if (from > at || at > from + slice["dur"].get<int64_t>()) continue;
        ++within;
        ends[end["id"]].push_back(slice["cat"]);
      }
      EXPECT_EQ(within, 1u);
      flows[end["name"]].insert(end["id"].get<int64_t>());
    }
  }
  EXPECT_EQ(flows["event"].size(), 2u);
  EXPECT_EQ(flows["collective"].size(), 1u);
  for (const int64_t flow : flows["event"])
    EXPECT_EQ(ends[flow], (std::vector<std::string>{"record", "wait"}));
  for (const int64_t flow : flows["collective"])
    EXPECT_EQ(ends[flow], (std::vector<std::string>{"collective", "collective"}));
}

TEST(Perfetto, PartsOfACollectiveLieAtOneTime) {
  const json all = json::parse(PerfettoJson({Step(0), Step(1)}));
  std::set<int64_t> times;
  for (const json& row : Rows(all, "X"))
    if (row["cat"] == "collective") times.insert(row["ts"].get<int64_t>());
  EXPECT_EQ(times.size(), 1u);
}

TEST(Perfetto, CountsTheBytesOfBlocks) {
  const json all = json::parse(PerfettoJson({Step(0)}));
  const std::vector<json> counts = Rows(all, "C");
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0]["args"], json({{"other", 64}}));
  EXPECT_EQ(counts[1]["args"], json({{"other", 0}}));
}

TEST(Perfetto, TracksHaveNames) {
  std::set<std::string> names;
  for (const json& row : Rows(json::parse(PerfettoJson({Step(0)})), "M"))
    if (row["args"].contains("name")) names.insert(row["args"]["name"].get<std::string>());
  EXPECT_EQ(names, (std::set<std::string>{"rank 0", "host", "stream main", "stream comm\\x1b"}));
}

}  // namespace
}  // namespace shardproof
