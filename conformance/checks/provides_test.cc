// FORMAT.md's tables of which requirements need which entries of "provides" are what the checks do.
//
// An entry is needed for a requirement if good traces are judged by it, but without the entry not.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "conformance/checks/check_all.h"
#include "conformance/checks/testing/hand_written.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/mini_layer_wise.h"
#include "conformance/checks/testing/mini_schedule.h"
#include "conformance/trace/names.h"
#include "conformance/trace/reader.h"

namespace shardproof {
namespace {

// By requirement: the entries that it needs, in the order of FORMAT.md: "`collectives` `sync`".
using Needs = std::map<std::string, std::set<size_t>>;

void AddNeeds(const shardproof::Run& run, Needs& needs) {
  const std::set<std::string> judged = CheckAll(run).judged;
  for (const std::string& id : judged) needs[id];
  for (size_t i = 0; i < trace_names::kProvides.size(); ++i) {
    shardproof::Run less = run;
    for (Trace& trace : less.traces) trace.provides.*trace_names::kProvides[i].field = false;
    const std::set<std::string> left = CheckAll(less).judged;
    for (const std::string& id : judged) {
      if (!left.contains(id)) needs[id].insert(i);
    }
  }
}

// "GE-03 GE-05 to GE-07"
std::string Listed(const std::vector<std::string>& ids) {
  const auto number = [&](size_t i) { return std::stoi(ids[i].substr(3)); };
  const auto follows = [&](size_t i) {
    return ids[i].substr(0, 2) == ids[i - 1].substr(0, 2) && number(i) == number(i - 1) + 1;
  };
  std::string text;
  for (size_t i = 0; i < ids.size();) {
    size_t last = i;
    while (last + 1 < ids.size() && follows(last + 1)) ++last;
    if (last < i + 2) last = i;
    text += (text.empty() ? "" : " ") + ids[i] + (last > i ? " to " + ids[last] : "");
    i = last + 1;
  }
  return text;
}

std::string Table(const Needs& needs) {
  std::map<std::set<size_t>, std::vector<std::string>> rows;
  for (const auto& [id, entries] : needs) rows[entries].push_back(id);
  std::string text = "| needs | for |\n|---|---|\n";
  for (const auto& [entries, ids] : rows) {
    std::string row;
    for (const size_t i : entries)
      row += (row.empty() ? "`" : " `") + std::string(trace_names::kProvides[i].name) + "`";
    text += "| " + (row.empty() ? "nothing" : row) + " | " + Listed(ids) + " |\n";
  }
  return text;
}

void ExpectInFormat(const std::string& table) {
  std::ifstream file("conformance/trace/FORMAT.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(table), std::string::npos) << "FORMAT.md needs this table:\n" << table;
}

Needs WithoutACase() {
  shardproof::Run run;
  for (int rank = 0; rank < 2; ++rank)
    run.traces.push_back(ReadTrace(HandWrittenTrace(rank), "hand-written"));
  Needs needs;
  AddNeeds(run, needs);
  return needs;
}

TEST(Provides, TheTableWithoutACaseIsWhatChecksDo) {
  const Needs needs = WithoutACase();
  EXPECT_GT(needs.size(), 15u);
  ExpectInFormat(Table(needs));
}

TEST(Provides, TheTableWithACaseIsWhatChecksDo) {
  Needs needs;
  for (const int32_t outer : {1, 2})
    AddNeeds(RunMini(MiniCase(4, [&](InstanceSpec& spec) { spec.outer = outer; })).run, needs);
  AddNeeds(RunSchedule(ScheduleCase(2, 2)).run, needs);
  AddNeeds(RunLayerWise(LayerWiseCase(2)).run, needs);
  for (const auto& [id, entries] : WithoutACase()) needs.erase(id);
  EXPECT_GT(needs.size(), 60u);
  ExpectInFormat(Table(needs));
}

}  // namespace
}  // namespace shardproof
