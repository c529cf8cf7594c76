// overlap_time_test: how much of a step does the schedule that hides all-to-alls save?
//
// The same case under both schedules on the simulated fabric; its traces are replayed under a cost
// model in which the all-to-alls of a layer take as long as its matrix products and everything else
// takes no time. What is left is the order of issue and what waits for what. With M microbatches
// only the first forward and the last backward have no other microbatch beside them: where
// exchanges hide behind another microbatch alone, a step takes at least (M + 1) / 2M of the
// sequential one. Delayed weight gradients hide some of their own microbatch's and get a little
// below.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "conformance/checks/graph/cost_model.h"
#include "conformance/runner/lab/fault_lab.h"

namespace shardproof {
namespace {

constexpr double kUnit = 100;  // microseconds: forward of one matrix product
constexpr int kMicrobatches = 8;
constexpr double kMost = 0.60;  // of the sequential step

bool Has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Attention and experts have two products each; backward is twice the work, half of it weight
// gradients.
double ComputeTime(const std::string& node, int phase) {
  const bool attention = Has(node, ".attention.qkv") || Has(node, ".attention.proj");
  const bool experts = Has(node, ".moe.experts.fc1") || Has(node, ".moe.experts.fc2");
  if (!attention && !experts) return 0;
  return phase == SPF_BWD ? 2 * kUnit : kUnit;
}

// How the time of a layer's four exchanges of tokens is divided; it always adds up to the compute's
// 12 units.
struct ExchangeTimes {
  double dispatch, combine, combine_backward, dispatch_backward;  // units
};
constexpr ExchangeTimes kAsTheComputeBeside{4, 4, 2, 2};
constexpr ExchangeTimes kEqual{3, 3, 3, 3};

// Durations of one rank's events, in issue order.
class RankTimes {
 public:
  RankTimes(const Trace& trace, const Model& model, ModelRank place, const ExchangeTimes& exchanges)
      : trace_(trace), model_(model), place_(place), exchanges_(exchanges) {
    for (const Event& event : trace.events) times_.push_back(TimeOf(event));
  }
  double At(const Event& event) const {
    return times_[static_cast<size_t>(&event - trace_.events.data())];
  }
  double communication() const { return communication_; }
  double compute() const { return compute_; }

 private:
  double TimeOf(const Event& event) {
    if (event.kind == EventKind::kCompute) {
      const double time = ComputeTime(model_.Node(event.id, place_).name, event.phase);
      compute_ += time;
      return time;
    }
    if (event.kind != EventKind::kCollective || event.purpose != SPF_FOR_EXPERT_TOKENS) return 0;
    const std::string module = model_.Tables(place_).modules[event.module].name;
    int& seen = seen_[{event.call, event.microbatch, event.module}];
    ++seen;
    double units = 0;
    if (Has(module, "combine")) {
      units = seen == 1 ? exchanges_.combine : exchanges_.combine_backward;
    } else if (seen == 1) {  // tokens; the probabilities, one number a row, take no time
      units = exchanges_.dispatch;
    } else if (seen == 4) {  // backward has them the other way round
      units = exchanges_.dispatch_backward;
    }
    communication_ += units * kUnit;
    return units * kUnit;
  }

  const Trace& trace_;
  const Model& model_;
  const ModelRank place_;
  const ExchangeTimes& exchanges_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, int>
      seen_;  // exchanges of (call, microbatch, module) so far
  std::vector<double> times_;
  double compute_ = 0, communication_ = 0;
};

struct StepTime {
  double total = 0, compute = 0, communication = 0;
};

StepTime TimeOf(const std::string& id, const ExchangeTimes& exchanges) {
  const Plugin plugin("builtin:reference");
  const FaultLab lab(id, plugin, testing::TempDir() + "overlap_time");
  const std::vector<Trace>& traces = lab.good().run.traces;
  const int32_t ep = lab.spec().instances[0].ep;
  std::vector<RankTimes> times;
  for (const Trace& trace : traces) {
    times.emplace_back(trace, *lab.models().at(0), ModelRank(trace.rank % ep), exchanges);
  }
  graph::CostModel costs;
  costs.duration_us = [&](const Trace& trace, const Event& event) {
    return times[static_cast<size_t>(trace.rank)].At(event);
  };
  return {graph::Simulate(graph::Lower(traces), costs).total_us, times[0].compute(),
          times[0].communication()};
}

double Ratio(const std::string& sequential, const std::string& overlapped,
             const ExchangeTimes& exchanges, const char* what) {
  const StepTime one = TimeOf(sequential, exchanges), two = TimeOf(overlapped, exchanges);
  EXPECT_EQ(one.communication, one.compute) << "all-to-alls take as long as compute";
  EXPECT_EQ(one.compute, two.compute) << "the same work";
  EXPECT_EQ(one.communication, two.communication);
  EXPECT_EQ(one.total, one.compute + one.communication) << "the sequential schedule hides nothing";
  const double ratio = two.total / one.total;
  std::printf(
      "%s, exchanges %s: %.0f of %.0f us, ratio %.4f (at most %.2f; the limit across microbatches "
      "is %.4f)\n",
      overlapped.c_str(), what, two.total, one.total, ratio, kMost,
      (kMicrobatches + 1.0) / (2 * kMicrobatches));
  return ratio;
}

const char kSequential[] = "w4.zero3.ep2.k8.do=t.layers8.moe4";

TEST(OverlapTime, ExchangesHideBehindComputeOfTheirLength) {
  for (const char* rest : {".1f1b", ".1f1b.dw"}) {
    EXPECT_LE(Ratio(kSequential, std::string(kSequential) + rest, kAsTheComputeBeside,
                    "as long as what is beside them"),
              kMost);
  }
}

// Exchanges of equal length are longer than some of the compute beside them and shorter than the
// rest.
TEST(OverlapTime, UnequalLengthsHideInPart) {
  EXPECT_LT(Ratio(kSequential, std::string(kSequential) + ".1f1b.dw", kEqual, "of equal length"),
            0.75);
}

// One microbatch has nothing to hide behind; attention's early release exposes the last exchange.
TEST(OverlapTime, TheMeasureCanFail) {
  const std::string one = "w4.zero3.ep2.do=t.layers8.moe4";
  EXPECT_GT(Ratio(one, one + ".1f1b", kAsTheComputeBeside, "of one microbatch"), 0.95);
  EXPECT_GT(Ratio(kSequential, std::string(kSequential) + ".1f1b.er", kAsTheComputeBeside,
                  "with early release"),
            kMost);
}

}  // namespace
}  // namespace shardproof
