// EP and LW rows that other families speak for: a family judges a trace, good or with one
// departure, and the row says what it said.
#include <gtest/gtest.h>

#include <functional>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/layer_wise/layer_wise.h"
#include "conformance/checks/numerics/numerics.h"
#include "conformance/checks/order/order.h"
#include "conformance/checks/reduction/reduction.h"
#include "conformance/checks/robustness/robustness.h"
#include "conformance/checks/schedule/schedule.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

using Edit = std::function<void(InstanceSpec&)>;
using Family = std::function<CheckResult(const Analysis&)>;

void Overlap(InstanceSpec& spec) {
  spec.ep = 2;
  spec.model.moe.experts = 4;
  spec.overlap_moe = spec.delay_wgrad = true;
  spec.loss_scale_log2 = 3;
}
void Dealt(InstanceSpec& spec) {
  spec.strategy = ShardingStrategy::kLayerWise;
  spec.overlap_param_gather = spec.overlap_grad_reduce = true;
  spec.bucket_size = 300;
  spec.clip_grad = 0.5;
  spec.grad_norm = true;
  spec.check_for_nan = true;
  spec.script = "tslt";
}

struct Row {
  const char* id;
  Edit of;
  Family judge;
  std::function<void(MiniRun&)> departs;  // edits the good run
  MiniFaults faults = {};                 // or this is written
};

// The values of the last call that published such a result of a parameter of this kind.
template <class F>
void EditLast(MiniRun& mini, int result, bool expert, F&& edit) {
  const InstanceFacts facts(mini.spec->instances[0], mini.spec->world);
  for (Trace& trace : mini.run.traces) {
    const Event* last = nullptr;
    for (const Event& event : trace.events) {
      const bool of = event.kind == EventKind::kPublish && event.result == result;
      if (of && (result > SPF_RESULT_GRAD || facts.Param(trace.rank, event.id).expert == expert))
        last = &event;
    }
    for (int64_t i = 0; last != nullptr && i < last->count; ++i)
      edit(At(trace.values, last->values + i));
  }
}
void WrongWeights(MiniRun& mini) {
  EditLast(mini, SPF_RESULT_PARAM, false, [](double& value) { value += 1; });
}
void WrongNorm(MiniRun& mini) {
  EditLast(mini, SPF_RESULT_GRAD_NORM, false, [](double& value) { value *= 2; });
}
void WrongExperts(MiniRun& mini) {
  EditLast(mini, SPF_RESULT_GRAD, true, [](double& value) { value += 1; });
}
void TwiceTheGradients(MiniRun& mini) {
  for (const bool expert : {false, true})
    EditLast(mini, SPF_RESULT_GRAD, expert, [](double& value) { value *= 2; });
}
void OtherCount(MiniRun& mini) {
  for (Event& event : mini.run.traces[1].events) {
    if (event.kind != EventKind::kCollective) continue;
    event.count += 1;
    return;
  }
}
void Accepted(MiniRun& mini) {
  mini.spec->illegal = "not divisible";
  mini.run.outcomes[0].kind = EngineOutcome::Kind::kOk;
}

CheckResult Graph(const Analysis& a) { return CheckGraph(a.lowered()); }

MiniFaults With(bool MiniFaults::*field) {
  MiniFaults faults;
  faults.*field = true;
  return faults;
}

const Row kRows[] = {
    {"EP-22", Overlap, CheckPublished, WrongExperts},
    {"EP-23", Overlap, CheckReduction, nullptr, With(&MiniFaults::no_zero_grad)},
    {"EP-30", Overlap, CheckPublished, WrongWeights},
    {"EP-31", Overlap, CheckPublished, WrongWeights},
    {"EP-32", Overlap, CheckPublished, TwiceTheGradients},
    {"EP-35", Overlap, Graph, OtherCount},
    {"EP-37", Overlap, CheckRobustness, Accepted},
    {"LW-09", Dealt, CheckPublished, WrongWeights},
    {"LW-15", Dealt, Graph, OtherCount},
    {"LW-20", Dealt, CheckPublished, WrongWeights},
    {"LW-26", Dealt, CheckPublished, TwiceTheGradients},
    {"LW-27", Dealt, CheckReduction, nullptr, With(&MiniFaults::skip_reduce_last)},
    {"LW-29", Dealt, CheckNanGuard, nullptr, With(&MiniFaults::no_nan_guard)},
    {"LW-30", Dealt, CheckScalars, WrongNorm},
    {"LW-31", Dealt, CheckPublished, WrongWeights},
    {"LW-33", Dealt, CheckPublished, WrongWeights},
    {"LW-36", Dealt, CheckPublished, WrongWeights},
    {"LW-37", Dealt, CheckRobustness, Accepted},
};

class CitedRows : public testing::TestWithParam<Row> {};

// What the family says of the run, and what is cited from that.
std::string Cited(const MiniRun& mini, const Row& row, CheckResult* cited) {
  const Analysis a(mini.run);
  const CheckResult of_family = row.judge(a);
  *cited = CiteForSchedule(a, of_family);
  cited->Merge(CiteForLayerWise(a, of_family));
  cited->not_checkable.clear();  // rows of other families
  const std::string found = FoundIn(of_family);
  return found + " | " + FoundIn(*cited);
}

TEST_P(CitedRows, AreFoundWhereTheFamilyFindsSomething) {
  const Row& row = GetParam();
  CheckResult cited;
  MiniRun good = RunMini(MiniCase(4, row.of));
  EXPECT_EQ(Cited(good, row, &cited), " | ");
  EXPECT_TRUE(cited.judged.contains(row.id));
  MiniRun bad = RunMini(MiniCase(4, row.of), row.faults);
  if (row.departs != nullptr) row.departs(bad);
  const std::string found = Cited(bad, row, &cited);
  EXPECT_NE(found.find(row.id), std::string::npos) << found;
}

INSTANTIATE_TEST_SUITE_P(All, CitedRows, testing::ValuesIn(kRows), [](const auto& row) {
  return std::string(row.param.id, 2) + "_" + std::string(row.param.id + 3);
});

// Two ranks issue two communicators in opposite orders.
TEST(CitedRows, AHangUnderTheScheduleIsEP34) {
  for (const bool opposite : {false, true}) {
    const WrittenRun made =
        WriteRun(MiniCase(2, Overlap), [&](const Case&, const InstanceFacts&, int32_t rank) {
          TraceBuilder t(rank, 2);
          t.CallBegin("create");
          const int a = t.Group("ep", {0, 1}), b = t.Group("dp_cp", {0, 1});
          const int on_a = t.Stream("a2a"), on_b = t.Stream("reduce");
          const bool first = rank == 0 || !opposite;
          if (first) t.Collective(SPF_ALL_REDUCE, a, on_a, 8);
          t.Collective(SPF_ALL_REDUCE, b, on_b, 8);
          if (!first) t.Collective(SPF_ALL_REDUCE, a, on_a, 8);
          t.CallEnd("create");
          return t.Done();
        });
    const Analysis a(made.run);
    const CheckResult graph = CheckGraph(a.lowered());
    EXPECT_EQ(FoundIn(graph), opposite ? "GE-04" : "");
    CheckResult cited = CiteForSchedule(a, graph);
    cited.not_checkable.clear();
    EXPECT_EQ(FoundIn(cited), opposite ? "EP-34" : "");
  }
}

}  // namespace
}  // namespace shardproof
