#include "conformance/fabric/sim/fiber.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardproof {
namespace {

TEST(Fiber, RunsInTurnsWithItsResumer) {
  std::string log;
  std::unique_ptr<Fiber> fiber;
  fiber = std::make_unique<Fiber>(64 << 10, [&] {
    log += "a";
    fiber->Yield();
    log += "b";
  });
  log += "1";
  fiber->Resume();
  log += "2";
  EXPECT_FALSE(fiber->done());
  fiber->Resume();
  EXPECT_TRUE(fiber->done());
  EXPECT_EQ(log, "1a2b");
}

TEST(Fiber, OneThatNeverRanIsDropped) {
  const Fiber fiber(64 << 10, [] { FAIL(); });
  EXPECT_FALSE(fiber.done());
}

TEST(Fiber, ManyWithDeepStacks) {
  std::vector<std::unique_ptr<Fiber>> fibers;
  uint64_t sum = 0;
  for (size_t i = 0; i < 64; ++i) {
    fibers.push_back(std::make_unique<Fiber>(256 << 10, [&, i] {
      volatile char deep[200 << 10];
      deep[0] = static_cast<char>(i);
      fibers[i]->Yield();
      sum += static_cast<uint64_t>(deep[0]);
    }));
  }
  for (int round = 0; round < 2; ++round) {
    for (const auto& fiber : fibers) fiber->Resume();
  }
  EXPECT_EQ(sum, 64u * 63u / 2);
}

TEST(Fiber, ExceptionsBelongToTheStackThatHandlesThem) {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<std::string> caught(2);
  for (size_t i = 0; i < 2; ++i) {
    fibers.push_back(std::make_unique<Fiber>(64 << 10, [&, i] {
      try {
        throw std::runtime_error(std::to_string(i));
      } catch (...) {
        fibers[i]->Yield();
        try {
          throw;
        } catch (const std::runtime_error& error) {
          caught[i] = error.what();
        }
      }
    }));
  }
  for (int round = 0; round < 2; ++round) {
    for (const auto& fiber : fibers) fiber->Resume();
  }
  EXPECT_EQ(caught, (std::vector<std::string>{"0", "1"}));
}

TEST(FiberDeathTest, AnOverflowFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto overflow = [] {
    Fiber fiber(64 << 10, [] {
      volatile char page[4096];
      for (char* at = const_cast<char*>(page);; at -= 512) *static_cast<volatile char*>(at) = 1;
    });
    fiber.Resume();
  };
  EXPECT_DEATH(overflow(), "");
}

}  // namespace
}  // namespace shardproof
