#include "conformance/common/in_parallel.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace shardproof {
namespace {

TEST(InParallel, EachThingOnce) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{1000}}) {
    std::vector<std::atomic<int>> calls(count);
    InParallel(count, [&] { return [&](size_t i) { ++calls[i]; }; });
    for (const std::atomic<int>& of : calls) EXPECT_EQ(of, 1) << count;
  }
}

TEST(InParallel, TheFirstErrorIsTold) {
  std::atomic<int> calls = 0;
  try {
    InParallel(50, [&] {
      return [&](size_t i) {
        ++calls;
        if (i % 7 == 3) throw std::runtime_error(std::to_string(i));
      };
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "3");
  }
  EXPECT_EQ(calls, 50);
}

}  // namespace
}  // namespace shardproof
