#include "conformance/runner/replay_line.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

namespace shardproof {
namespace {

// What a POSIX shell makes of the words: each in brackets.
std::string AsAShellReads(const std::string& words) {
  std::FILE* shell = popen(("printf '[%s]' " + words).c_str(), "r");
  std::string text;
  for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(shell), 0);
  return text;
}

TEST(ShellWord, AShellReadsItBack) {
  for (const char* text : {"plain", "", "two words", "it's", "$(touch /tmp/x)", "`a`", "a\\b", "*",
                           "~", "a;b", "new\nline", "\"", "#", "!", "a'b'c"}) {
    EXPECT_EQ(AsAShellReads(ShellWord(text)), "[" + std::string(text) + "]") << text;
  }
}

Options Of(const std::string& impl, const std::string& fabric) {
  Options options;
  options.program = "shardproof";
  options.impl = impl;
  options.fabric = fabric;
  options.ranks = 4;
  return options;
}

TEST(ReplayLine, OfSim) {
  Options options = Of("builtin:reference", "sim");
  EXPECT_EQ(ReplayLine(options, "w2.ddp"),
            "shardproof replay --impl builtin:reference --case w2.ddp --seed 1");
  options.timing = "pct";
  options.queues = 2;
  options.fault = "event_wait:3:drop@1";
  options.strict = true;
  EXPECT_EQ(ReplayLine(options, "w2.ddp"),
            "shardproof replay --impl builtin:reference --case w2.ddp --seed 1 --timing pct "
            "--queues 2 --fault event_wait:3:drop@1 --strict");
}
TEST(ReplayLine, OfMpiStartsTheRanks) {
  EXPECT_EQ(ReplayLine(Of("builtin:reference", "mpi"), "w2.ddp"),
            "mpirun -n 4 shardproof run --verbose --impl builtin:reference --case w2.ddp --seed 1 "
            "--fabric mpi");
}
TEST(ReplayLine, OfNcclNamesRanksAndProducts) {
  EXPECT_EQ(ReplayLine(Of("builtin:reference", "nccl"), "w2.ddp"),
            "shardproof run --verbose --impl builtin:reference --case w2.ddp --seed 1 --fabric "
            "nccl --ranks 4 --gemm fp32");
}
TEST(ReplayLine, PathsAreFromTheRootAndArgumentsStay) {
  const std::string here = std::filesystem::current_path().string();
  Options options = Of("lib:my engine/lib.so:level=2 x", "sim");
  options.program = "./bin/shardproof";
  EXPECT_EQ(ReplayLine(options, "w2.ddp"),
            here + "/bin/shardproof replay --impl 'lib:" + here +
                "/my engine/lib.so:level=2 x' --case w2.ddp --seed 1");
  options.impl = "lib:lib.so";  // the plug-in is looked for in this folder
  EXPECT_EQ(ReplayLine(options, "w2.ddp"),
            here + "/bin/shardproof replay --impl lib:" + here + "/lib.so --case w2.ddp --seed 1");
}
TEST(CheckLine, NamesTheFolderFromTheRoot) {
  EXPECT_EQ(CheckLine(Of("", "sim"), "trace", "/tmp/a b/../c d"),
            "shardproof check 'trace:/tmp/c d'");
}

TEST(RecordAgainLine, IsTheCommandThatWasGivenAndTheCase) {
  Options options = Of("", "sim");
  options.recorded_by = "mine --case";
  EXPECT_EQ(RecordAgainLine(options, "w2.zero3.do=te"), "mine --case w2.zero3.do=te");
}

}  // namespace
}  // namespace shardproof
