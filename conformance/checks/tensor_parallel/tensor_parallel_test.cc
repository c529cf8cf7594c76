// Traces of a small engine whose layers are split over tp, good and with one departure each.
#include "conformance/checks/tensor_parallel/tensor_parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

Case Split(const std::function<void(InstanceSpec&)>& edit = {}) {
  return MiniCase(4, [&](InstanceSpec& spec) {
    spec.tp = spec.etp = 2;
    spec.tensor_parallel = true;
    spec.model.layers = 2;
    spec.script = "te";
    if (edit) edit(spec);
  });
}

MiniRun With(const MiniFaults& faults) { return RunMini(Split(), faults); }

CheckResult Judged(const MiniRun& mini) { return CheckTensorParallel(mini.run); }

TEST(TensorParallel, SumsInTheirPlaceAreGood) {
  const CheckResult result = Judged(RunMini(Split()));
  EXPECT_EQ(FoundIn(result), "");
  for (const char* id : {"TP-01", "TP-02", "TP-03", "TP-04", "TP-05"})
    EXPECT_TRUE(result.judged.contains(id)) << id;
}

TEST(TensorParallel, WithoutShardsNothingIsAsked) {
  const CheckResult result = Judged(RunMini(MiniCase(4)));
  EXPECT_EQ(result.judged.size() + result.not_checkable.size(), 0u);
}

TEST(TensorParallel, AValueThatIsReadUnsummedOrSummedTwiceIsFound) {
  for (const int32_t sums : {0, 2}) {
    MiniFaults faults;
    faults.tp_sums_forward = sums;
    const CheckResult result = Judged(With(faults));
    EXPECT_EQ(FoundIn(result), "TP-01") << sums;
    faults.rank = 1;
    EXPECT_EQ(FoundIn(Judged(With(faults))), "TP-01") << sums;
  }
}

TEST(TensorParallel, AGradientThatIsReadUnsummedOrSummedTwiceIsFound) {
  for (const int32_t sums : {0, 2}) {
    MiniFaults faults;
    faults.tp_sums_backward = sums;
    const CheckResult result = Judged(With(faults));
    EXPECT_EQ(FoundIn(result), "TP-02") << sums;
    EXPECT_EQ(result.findings.at(0).rank, 0);
    EXPECT_EQ(result.findings.at(0).step, 0);
  }
}

// Instead of a sum a kernel of the engine's own writes the value, once: of that read nothing is
// known.
TEST(TensorParallel, ValuesThatCannotBeFollowedAreNotJudged) {
  MiniRun mini = RunMini(Split());
  Trace& trace = mini.run.traces[1];
  const auto sum = std::find_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return event.kind == EventKind::kCollective && event.collective == SPF_ALL_REDUCE &&
           trace.groups[size_t(event.group)].name.starts_with("tp");
  });
  ASSERT_NE(sum, trace.events.end());
  sum->kind = EventKind::kLaunch;
  sum->id = SPF_K_CUSTOM;
  const CheckResult result = Judged(mini);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(NotCheckableIn(result).contains("TP-01"));
  EXPECT_TRUE(NotCheckableIn(result).contains("TP-03"));
}

TEST(TensorParallel, AnAverageIsNoSum) {
  MiniFaults faults;
  faults.tp_average = true;
  EXPECT_EQ(FoundIn(Judged(With(faults))), "TP-01 TP-02");
}

TEST(TensorParallel, SumsOverOtherRanksAreFound) {
  MiniFaults faults;
  faults.tp_group = "dp_cp";
  const CheckResult result = Judged(With(faults));
  EXPECT_EQ(FoundIn(result), "TP-03");
  EXPECT_EQ(result.findings.at(0).seen, "over [0,2]");
}

TEST(TensorParallel, GradientsOfParametersThatAreSummedOverTpAreFound) {
  MiniFaults faults;
  faults.reduce_over_tp = true;
  EXPECT_EQ(FoundIn(Judged(With(faults))), "TP-04");
}

TEST(TensorParallel, GradientsThatDifferBetweenRanksOfTpAreFound) {
  MiniFaults faults;
  faults.grads_off_by_one = true;
  faults.rank = 1;
  EXPECT_EQ(FoundIn(Judged(With(faults))), "TP-05");
}

// Sums of squares and of zeros of the first train step.
struct Sums {
  double whole[2] = {0, 0}, first[2] = {0, 0}, shards[2] = {0, 0};
};
Sums SumsOf(const MiniRun& mini, const InstanceFacts& facts) {
  Sums sums;
  for (int32_t key = 0; key < facts.n_keys(); ++key) {
    const ParamFacts& param = facts.ByKey(key);
    for (const float value : mini.oracles[0]->calls[1].grads.at(param.name)) {
      const double terms[2] = {double{value} * value, value == 0 ? 1.0 : 0.0};
      for (int i = 0; i < 2; ++i) {
        if (param.name == param.tensor) {
          sums.whole[i] += terms[i];
        } else {
          sums.shards[i] += terms[i];
          if (param.name.ends_with("[tp 0 of 2]")) sums.first[i] += terms[i];
        }
      }
    }
  }
  return sums;
}

// What is found if rank 0 publishes this norm.
std::string FoundFor(const std::function<double(const Sums&)>& squares) {
  MiniRun mini = RunMini(Split([](InstanceSpec& spec) { spec.grad_norm = true; }));
  const InstanceFacts facts(mini.spec->instances[0], mini.spec->world);
  const Sums sums = SumsOf(mini, facts);
  mini.oracles[0]->calls[1].grad_norm = std::sqrt(sums.whole[0] + sums.shards[0]);
  Trace& trace = mini.run.traces[0];
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kPublish && event.result == SPF_RESULT_GRAD_NORM)
      trace.values[size_t(event.values)] = std::sqrt(squares(sums));
  }
  for (size_t rank = 1; rank < 4; ++rank) {  // others do not publish theirs
    for (Event& event : mini.run.traces[rank].events) {
      if (event.kind == EventKind::kPublish && event.result == SPF_RESULT_GRAD_NORM)
        event.values = -1;
    }
  }
  const CheckResult result = CheckTpStatistics(mini.run);
  return FoundIn(result) + (result.judged.contains("TP-06") ? "" : "not judged");
}

TEST(TensorParallel, ANormThatCountsWhatIsWholeForEachRankIsFound) {
  EXPECT_EQ(FoundFor([](const Sums& s) { return s.whole[0] + s.shards[0]; }), "");
  EXPECT_EQ(FoundFor([](const Sums& s) { return 2 * s.whole[0] + s.shards[0]; }), "TP-06");
}

TEST(TensorParallel, ANormThatLacksTheOtherShardsIsFound) {
  EXPECT_EQ(FoundFor([](const Sums& s) { return s.whole[0] + s.first[0]; }), "TP-06");
}

TEST(TensorParallel, ANormThatIsWrongInAnotherWayIsNotAMatterOfTp) {
  EXPECT_EQ(FoundFor([](const Sums& s) { return 3 * s.whole[0]; }), "not judged");
}

Case Orthogonalised(MuonTpMode mode) {
  return Split([mode](InstanceSpec& spec) {
    spec.strategy = ShardingStrategy::kNoShard;
    spec.optimizer = Optimizer::kMuon;
    spec.muon.tp_mode = mode;
  });
}

// So many elements that no node has computed arrive at the rank over tp in its first train step.
void Exchange(MiniRun& mini, size_t rank, int64_t elements) {
  Trace& trace = mini.run.traces[rank];
  const auto group = std::find_if(trace.groups.begin(), trace.groups.end(),
                                  [](const GroupInfo& one) { return one.name.starts_with("tp"); });
  const auto end = std::find_if(trace.events.begin(), trace.events.end(), [](const Event& event) {
    return event.kind == EventKind::kCallEnd && event.call == 1;
  });
  ASSERT_TRUE(group != trace.groups.end() && end != trace.events.end());
  Event gather = *end;
  gather.kind = EventKind::kCollective;
  gather.collective = SPF_ALL_GATHER;
  gather.dtype = SPF_F32;
  gather.group = static_cast<int32_t>(group - trace.groups.begin());
  gather.count = elements / 2;
  const auto first = static_cast<uint32_t>(trace.ranges.size());
  gather.ranges = {first, first + 2};
  trace.ranges.push_back({1000000, kRead, 0, 2 * elements});
  trace.ranges.push_back({1000000, kWrite, 2 * elements, 4 * elements});
  trace.events.insert(end, gather);
}

// Of two layers: qkv 24 x 16, proj 16 x 8, fc1 24 x 16 and fc2 16 x 12 on each rank.
constexpr int64_t kShards = 2 * (24 * 16 + 16 * 8 + 24 * 16 + 16 * 12);

// Ranks of which TP-07 is said, if these elements arrive there.
std::string FoundWith(MuonTpMode mode, const std::vector<int64_t>& elements) {
  MiniRun mini = RunMini(Orthogonalised(mode));
  for (size_t rank = 0; rank < elements.size(); ++rank) {
    if (elements[rank] > 0) Exchange(mini, rank, elements[rank]);
  }
  const CheckResult result = Judged(mini);
  std::string found = result.judged.contains("TP-07") ? "" : "not judged ";
  for (const Finding& finding : result.findings) {
    if (finding.requirement == "TP-07") found += std::to_string(finding.rank);
  }
  EXPECT_EQ(FoundIn(result).find("TP-07") != std::string::npos, !found.empty());
  return found;
}

TEST(TensorParallel, MuonThatExchangesWhatItsModeNeedsIsGood) {
  EXPECT_EQ(FoundWith(MuonTpMode::kDuplicated, std::vector<int64_t>(4, 2 * kShards)), "");
  EXPECT_EQ(FoundWith(MuonTpMode::kBlockwise, {}), "");
  // Five steps; 16 x 16 for Q, K, V, proj, fc1 and fc2 of both layers.
  EXPECT_EQ(FoundWith(MuonTpMode::kDistributed, std::vector<int64_t>(4, 2 * 5 * 6 * 256)), "");
}

TEST(TensorParallel, MuonThatExchangesNothingIsFound) {
  EXPECT_EQ(FoundWith(MuonTpMode::kDuplicated, {}), "0123");
  EXPECT_EQ(FoundWith(MuonTpMode::kDistributed, {}), "0123");
  EXPECT_EQ(FoundWith(MuonTpMode::kDuplicated, {2 * kShards, 2 * kShards, 2 * kShards, 0}), "3");
}

TEST(TensorParallel, MuonThatExchangesTooMuchIsFound) {
  EXPECT_EQ(
      FoundWith(MuonTpMode::kDuplicated, {2 * kShards, 2 * kShards + 2, 2 * kShards, 2 * kShards}),
      "1");
  EXPECT_EQ(FoundWith(MuonTpMode::kDistributed, {0, 0, 0, 2 * 5 * 6 * 256 + 2}), "0123");
  EXPECT_EQ(FoundWith(MuonTpMode::kBlockwise, {0, 0, 2, 0}), "2");
}

TEST(TensorParallel, WithoutMemoryTheSumsAreNotJudged) {
  MiniRun mini = RunMini(Orthogonalised(MuonTpMode::kBlockwise));
  for (Trace& trace : mini.run.traces) trace.provides.memory = false;
  const CheckResult result = Judged(mini);
  for (const char* id : {"TP-01", "TP-02", "TP-03", "TP-04", "TP-07"}) {
    EXPECT_FALSE(result.judged.contains(id)) << id;
    EXPECT_TRUE(NotCheckableIn(result).contains(id)) << id;
  }
}

}  // namespace
}  // namespace shardproof
