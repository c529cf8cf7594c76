#include "conformance/checks/program/digraph.h"

#include <gtest/gtest.h>

#include <random>

#include "conformance/checks/program/reachability.h"

namespace shardproof::graph {
namespace {

TEST(Digraph, AcyclicGraphIsSortedWhole) {
  const Digraph graph(4, {{2, 0}, {0, 1}, {3, 1}});
  const TopologicalOrder order = Sort(graph, {});
  ASSERT_TRUE(order.complete());
  EXPECT_LT(order.position[2], order.position[0]);
  EXPECT_LT(order.position[0], order.position[1]);
  EXPECT_TRUE(ShortCycle(graph, order).empty());
}

TEST(Digraph, WhatIsBehindANodeThatNeverFiresStaysUnplacedWithoutACycle) {
  const Digraph graph(3, {{0, 1}, {1, 2}});
  const TopologicalOrder order = Sort(graph, {false, true, false});
  EXPECT_FALSE(order.complete());
  EXPECT_EQ(order.position[0], 0u);
  EXPECT_EQ(order.position[2], kUnplaced);
  EXPECT_TRUE(ShortCycle(graph, order).empty());
}

TEST(Digraph, AnOrderThatIsWishedForIsKeptWhereTheGraphAllowsIt) {
  const Digraph graph(5, {{0, 2}, {4, 1}});
  using Nodes = std::vector<uint32_t>;
  EXPECT_EQ(Sort(graph, {}).order, (Nodes{0, 3, 4, 2, 1}));
  const Nodes in_a_row{kUnplaced, 0, 1, 2, kUnplaced};
  EXPECT_EQ(SortAsWished(graph, {}, in_a_row).order, (Nodes{0, 4, 1, 2, 3}));
  // 1 must come after 3: 2 need not wait for it.
  const Digraph turned(4, {{3, 1}});
  EXPECT_EQ(SortAsWished(turned, {}, {kUnplaced, 0, 1, 2}).order, (Nodes{0, 2, 3, 1}));
  EXPECT_EQ(SortAsWished(turned, {false, false, false, true}, {kUnplaced, 0, 1, 2}).order,
            (Nodes{0, 2}));
}

TEST(Digraph, TheCauseIsReportedAndNotTheCycleInItsShadow) {
  // 3 -> 4 -> 3 leads into 0 -> 1 -> 0.
  const Digraph graph(5, {{0, 1}, {1, 0}, {3, 4}, {4, 3}, {4, 0}, {2, 3}});
  const auto cycle = ShortCycle(graph, Sort(graph, {}));
  ASSERT_EQ(cycle.size(), 2u);
  EXPECT_EQ(cycle[0], 3u);
  EXPECT_EQ(cycle[1], 4u);
}

TEST(Digraph, TheShortCycleInsideALargeComponentIsFound) {
  std::vector<Digraph::Edge> edges;
  for (uint32_t i = 0; i < 100; ++i) edges.emplace_back(i, (i + 1) % 100);
  edges.emplace_back(42, 40);
  const Digraph graph(100, edges);
  EXPECT_EQ(ShortCycle(graph, Sort(graph, {})), (std::vector<uint32_t>{40, 41, 42}));
}

TEST(Digraph, ALongCycleNeedsNoRecursion) {
  std::vector<Digraph::Edge> edges;
  const uint32_t n = 1'000'000;
  for (uint32_t i = 0; i < n; ++i) edges.emplace_back(i, (i + 1) % n);
  const Digraph graph(n, edges);
  EXPECT_EQ(Sort(graph, {}).order.size(), 0u);
}

TEST(Digraph, PathsAndReachabilityAgreeOnRandomGraphs) {
  std::mt19937 random(7);
  int cut = 0, apart = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<Digraph::Edge> edges;
    const uint32_t n = 30;
    for (int i = 0; i < 45; ++i) {
      const uint32_t a = static_cast<uint32_t>(random()) % n,
                     b = static_cast<uint32_t>(random()) % n;
      if (a != b) edges.emplace_back(std::min(a, b), std::max(a, b));
    }
    const Digraph graph(n, edges);
    const TopologicalOrder order = Sort(graph, {});
    std::vector<std::vector<bool>> reach(n, std::vector<bool>(n, false));
    for (uint32_t a = n; a-- > 0;) {
      for (const auto& [from, to] : edges) {
        if (from != a) continue;
        reach[a][to] = true;
        for (uint32_t b = 0; b < n; ++b) reach[a][b] = reach[a][b] || reach[to][b];
      }
    }
    Reachability reachability(graph, order);
    const ReachLabels labels(graph, order);
    for (uint32_t a = 0; a < n; ++a) {
      for (uint32_t b = 0; b < n; ++b) {
        ASSERT_EQ(reachability.Reaches(a, b), reach[a][b]);
        if (reach[a][b]) {
          ASSERT_TRUE(labels.MayReach(a, b));
        } else if (a != b) {
          cut += labels.MayReach(a, b) ? 0 : 1, apart += 1;
        }
        if (a == b) continue;
        const auto path = FindPath(graph, order, a, b);
        ASSERT_EQ(!path.empty(), reach[a][b]);
        for (size_t i = 0; i + 1 < path.size(); ++i) {
          ASSERT_NE(std::find(graph.begin(path[i]), graph.end(path[i]), path[i + 1]),
                    graph.end(path[i]));
        }
      }
    }
  }
  EXPECT_GT(cut, apart * 9 / 10);  // labels leave little to search
}

// Chains from one node, as streams are: whether one reaches far into another needs no long search.
TEST(Digraph, NodesOfDifferentChainsAreToldApartWithoutASearch) {
  std::vector<Digraph::Edge> edges;
  const uint32_t n = 100'000, chains = 4;
  for (uint32_t v = 1; v < n; ++v) edges.emplace_back(v <= chains ? 0 : v - chains, v);
  const Digraph graph(n, edges);
  const TopologicalOrder order = Sort(graph, {});
  Reachability reachability(graph, order);
  for (uint32_t i = 0; i < 1000; ++i) {
    const uint32_t near = 1 + i, far = n - 1 - 7 * i;
    ASSERT_EQ(reachability.Reaches(near, far), (far - near) % chains == 0);
    ASSERT_FALSE(reachability.Reaches(far, near));
  }
  // The quarter of them that is on one chain is walked along; of the others hardly any.
  EXPECT_LT(reachability.passed(), int64_t{250 + 20} * n / chains);
}

}  // namespace
}  // namespace shardproof::graph
