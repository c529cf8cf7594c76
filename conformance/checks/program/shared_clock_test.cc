#include "conformance/checks/program/shared_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace shardproof::graph {
namespace {

// Beside plain maps: copies, entries and joins in any order.
TEST(SharedClock, IsAPlainVectorClock) {
  std::mt19937 random(7);
  const std::vector<uint32_t> threads{0,    1,     15,    16,      17,      255,          256,
                                      4095, 40000, 65535, 1 << 16, 1 << 20, (1 << 24) - 1};
  std::vector<SharedClock<6>> clocks(4);
  std::vector<std::map<uint32_t, uint32_t>> plain(4);
  for (int step = 0; step < 20000; ++step) {
    const size_t a = random() % 4, b = random() % 4;
    const uint32_t thread = threads[random() % threads.size()];
    switch (random() % 8) {
      case 0:
        clocks[a] = clocks[b];
        plain[a] = plain[b];
        break;
      case 1:
        clocks[a].Join(clocks[b]);
        for (const auto& [of, time] : std::map(plain[b]))
          plain[a][of] = std::max(plain[a][of], time);
        break;
      case 2:
        clocks[a] = {};
        plain[a].clear();
        break;
      default:
        clocks[a].Set(thread, plain[a][thread] += static_cast<uint32_t>(random() % 3));
    }
    for (size_t i = 0; i < 4; ++i) {
      for (const uint32_t of : threads) {
        const auto known = plain[i].find(of);
        ASSERT_EQ(clocks[i].Of(of), known == plain[i].end() ? 0 : known->second) << step;
      }
    }
  }
}

}  // namespace
}  // namespace shardproof::graph
