#include "conformance/runner/host_facts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardproof {
namespace {

std::vector<std::string> Packed(const std::vector<HostFacts>& all) {
  std::vector<std::string> by_rank;
  for (const HostFacts& facts : all) by_rank.push_back(PackFacts(facts));
  return by_rank;
}

TEST(HostFacts, TheSameEverywhereIsNoDisagreement) {
  const auto all = Packed({{"near", "1.3.0, a", "e"}, {"near", "1.3.0, a", "e"}});
  EXPECT_EQ(HostsDisagree(all, "lib:e.so"), "");
  EXPECT_EQ(HostsLine(all), "");
}
TEST(HostFacts, AnotherSuiteIsToldWithHostAndRanks) {
  const auto all = Packed({{"near", "1.3.0, a", "e"},
                           {"near", "1.3.0, a", "f"},
                           {"far", "1.2.0, b", "e"},
                           {"far", "1.2.0, b", "e"},
                           {"far", "1.2.0, b", "e"},
                           {"near", "1.3.0, a", "e"}});
  EXPECT_EQ(HostsDisagree(all, "lib:e.so"),
            "shardproof is not the same on all ranks, so nothing was run:\n"
            "host near, ranks 0 and 1 and 5: 1.3.0, a\n"
            "host far, ranks 2 to 4: 1.2.0, b\n"
            "Copy one build to the same path on each host");
  EXPECT_EQ(HostsLine(all), "hosts: near: ranks 0 and 1 and 5; far: ranks 2 to 4");
}
TEST(HostFacts, AnEngineThatIsMissingOnAHostIsNamed) {
  const auto all =
      Packed({{"near", "s", "3 bytes"}, {"far", "s", "it cannot be read (No such file)"}});
  EXPECT_EQ(HostsDisagree(all, "lib:e.so"),
            "the engine lib:e.so is not the same on all ranks, so nothing was run:\n"
            "host near, rank 0: 3 bytes\n"
            "host far, rank 1: it cannot be read (No such file)\n"
            "Copy one build to the same path on each host");
}
TEST(HostFacts, HereTheyAreOfTheProgramAndTheLibrary) {
  const std::string path = testing::TempDir() + "/engine.so";
  std::ofstream(path) << "one";
  const HostFacts one = FactsHere("lib:" + path + ":some args:more");
  std::ofstream(path) << "two";
  const HostFacts two = FactsHere("lib:" + path);
  EXPECT_EQ(one.suite, two.suite);
  EXPECT_FALSE(one.host.empty());
  EXPECT_NE(one.engine, two.engine);
  EXPECT_NE(one.engine.find("3 bytes"), std::string::npos);
  EXPECT_NE(FactsHere("lib:" + path + "x").engine.find("No such file"), std::string::npos);
  EXPECT_EQ(FactsHere("builtin:reference").engine, "");
}
TEST(HostFacts, WhatAnotherSuitePackedIsRefused) {
  EXPECT_THROW(HostsDisagree({"shardproof 9"}, "lib:e.so"), std::runtime_error);
}

}  // namespace
}  // namespace shardproof
