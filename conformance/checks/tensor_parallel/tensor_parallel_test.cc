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

TEST(TensorParallel, SumsThatRanksPutTogetherAreJudged) {
  MiniFaults way;
  way.messages = MiniMessages::kBroadcasts;
  const CheckResult result = Judged(With(way));
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("TP-01") && result.judged.contains("TP-02"));
  way.messages_again = true;
  EXPECT_EQ(FoundIn(Judged(With(way))), "TP-01 TP-02");
  way.messages_again = false;
  way.tp_group = "dp_cp";
  EXPECT_EQ(FoundIn(Judged(With(way))), "TP-03");
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

Case Orthogonalised(MuonTpMode mode, ShardingStrategy strategy = ShardingStrategy::kNoShard) {
  return Split([=](InstanceSpec& spec) {
    spec.strategy = strategy;
    spec.optimizer = Optimizer::kMuon;
    spec.muon.tp_mode = mode;
    if (strategy == ShardingStrategy::kLayerWise) spec.lr = 0.0625;
  });
}

// Bytes that no node has computed arrive at the rank from a group, behind the last node of train
// step 1 or before its first.
struct Arrives {
  int64_t bytes = 0;
  const char* group = "tp";
  bool behind = true;
};
void Exchange(Trace& trace, const Arrives& what) {
  const auto group =
      std::find_if(trace.groups.begin(), trace.groups.end(),
                   [&](const GroupInfo& one) { return one.name.starts_with(what.group); });
  auto at = std::find_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return event.kind == (what.behind ? EventKind::kCallEnd : EventKind::kCallBegin) &&
           event.call == 1;
  });
  ASSERT_TRUE(group != trace.groups.end() && at != trace.events.end());
  Event gather = *at;
  gather.kind = EventKind::kCollective;
  gather.collective = SPF_ALL_GATHER;
  gather.dtype = SPF_U8;
  gather.group = static_cast<int32_t>(group - trace.groups.begin());
  gather.count = what.bytes / 2;
  const auto first = static_cast<uint32_t>(trace.ranges.size());
  gather.ranges = {first, first + 2};
  trace.ranges.push_back({1000000, kRead, 0, what.bytes / 2});
  trace.ranges.push_back({1000000, kWrite, what.bytes / 2, what.bytes});
  trace.events.insert(what.behind ? at : at + 1, gather);
}

// Ranks of which TP-07 is said, if this arrives by rank. Ranks 0 and 2, and 1 and 3, hold the same.
std::string FoundWith(const Case& c, const std::vector<Arrives>& by_rank) {
  MiniRun mini = RunMini(c);
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].bytes > 0) Exchange(mini.run.traces[rank], by_rank[rank]);
  }
  const CheckResult result = Judged(mini);
  std::string found = result.judged.contains("TP-07") ? "" : "not judged ";
  for (const Finding& finding : result.findings) {
    if (finding.requirement == "TP-07") found += std::to_string(finding.rank);
  }
  EXPECT_EQ(FoundIn(result).find("TP-07") != std::string::npos, !found.empty());
  return found;
}

// Of two layers: qkv 24 x 16, proj 16 x 8, fc1 24 x 16 and fc2 16 x 12 on each rank, gathered; and
// 16 x 16 in each of five steps for Q, K, V, proj, fc1 and fc2.
constexpr int64_t kGathered = 4 * 2 * 2 * (24 * 16 + 16 * 8 + 24 * 16 + 16 * 12),
                  kSummed = 4 * 2 * 5 * 6 * 256;

TEST(TensorParallel, MuonThatExchangesWhatItsModeNeedsIsGood) {
  const Case gathers = Orthogonalised(MuonTpMode::kDuplicated),
             sums = Orthogonalised(MuonTpMode::kDistributed),
             blocks = Orthogonalised(MuonTpMode::kBlockwise);
  EXPECT_EQ(FoundWith(gathers, {{kGathered}, {kGathered}, {kGathered}, {kGathered}}), "");
  EXPECT_EQ(FoundWith(sums, {{kSummed}, {kSummed}, {kSummed}, {kSummed}}), "");
  EXPECT_EQ(FoundWith(blocks, {}), "");
  // By one of the ranks that hold the same, sent back; in parts; over the world; in backward.
  EXPECT_EQ(FoundWith(gathers, {{2 * kGathered}, {2 * kGathered}}), "");
  EXPECT_EQ(FoundWith(sums, {{2 * kSummed}, {2 * kSummed}, {2 * kSummed}, {2 * kSummed}}), "");
  EXPECT_EQ(FoundWith(gathers, {{kGathered, "world"}, {kGathered, "world"}}), "");
  EXPECT_EQ(FoundWith(gathers, {{kGathered, "tp", false}, {kGathered, "tp", false}}), "");
  // Norms, and one for each parameter; what goes over tp before the optimizer steps.
  EXPECT_EQ(FoundWith(blocks, {{64}, {240}, {64}, {240}}), "");
  EXPECT_EQ(FoundWith(blocks, {{4096, "tp", false}, {4096, "tp", false}}), "");
}

// Whether a step went well, and what arrived, is looked up on every rank that could share the work.
TEST(TensorParallel, MuonIsNotJudgedInAStepThatFails) {
  for (const size_t rank : {0u, 2u}) {
    MiniRun mini = RunMini(Orthogonalised(MuonTpMode::kDuplicated));
    for (const size_t failed : {rank, rank + 1}) {
      for (Event& event : mini.run.traces[failed].events) {
        if (event.kind == EventKind::kCallEnd && event.call == 1) event.status = SPF_FAILED;
      }
    }
    const CheckResult result = Judged(mini);
    EXPECT_FALSE(result.judged.contains("TP-07")) << rank;
    EXPECT_EQ(FoundIn(result).find("TP-07"), std::string::npos) << rank;
  }
}

TEST(TensorParallel, MuonThatExchangesNothingIsFound) {
  for (const MuonTpMode mode : {MuonTpMode::kDuplicated, MuonTpMode::kDistributed}) {
    EXPECT_EQ(FoundWith(Orthogonalised(mode), {}), "01");
    EXPECT_EQ(FoundWith(Orthogonalised(mode), {{64}, {64}, {64}, {64}}), "01") << "numbers";
  }
  const Case gathers = Orthogonalised(MuonTpMode::kDuplicated);
  EXPECT_EQ(FoundWith(gathers, {{kGathered}, {}, {}, {}}), "1");
  EXPECT_EQ(FoundWith(gathers, {{kGathered, "dp_cp"}, {kGathered, "dp_cp"}}), "01");
  Case skips = gathers;
  skips.instances[0].skip_norm = 1000;
  EXPECT_EQ(FoundWith(skips, {}), "") << "no step has to change anything";
}

TEST(TensorParallel, MuonThatExchangesTooMuchIsFound) {
  const Case gathers = Orthogonalised(MuonTpMode::kDuplicated);
  EXPECT_EQ(FoundWith(gathers, {{0}, {4 * kGathered + 4}, {0}, {0}}), "01");
  EXPECT_EQ(FoundWith(gathers, {{2 * kGathered}, {kGathered}, {2 * kGathered + 4}, {}}), "2");
  EXPECT_EQ(FoundWith(Orthogonalised(MuonTpMode::kBlockwise), {{}, {}, {4096}, {}}), "2");
  // Of what is dealt each matrix is one rank's.
  const Case deals = Orthogonalised(MuonTpMode::kDuplicated, ShardingStrategy::kLayerWise);
  EXPECT_EQ(FoundWith(deals, {{kGathered}, {kGathered / 2}, {kGathered}, {kGathered / 2}}), "");
  EXPECT_EQ(FoundWith(deals, {{kGathered}, {kGathered}, {kGathered + 4}, {}}), "2");
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
