// A process with a real engine is killed while it saves (SIGKILL), or its disk fills up. Does the
// checkpoint before, or the new one, load?
//
// The moment is a number of file operations, not a time: the linker puts the functions below in the
// place of the C library's for this program (--wrap), and the engine knows nothing of it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <ostream>
#include <random>

#include "conformance/runner/scratch_folder.h"
#include "property_tests/engine_script.h"

namespace {

enum class Then { kNothing, kKill, kFull };

// Read by the wrapped functions, in the process that saves.
struct Ambush {
  Then then = Then::kNothing;
  int64_t at = 0;      // this operation, counted from 1
  double written = 0;  // of a write that dies: how much of it reaches the file
  int64_t seen = 0;    // operations so far
};
Ambush* g_ambush = nullptr;  // shared with child processes; the C functions below have no argument

bool Ambushed() {
  return g_ambush != nullptr && ++g_ambush->seen >= g_ambush->at &&
         g_ambush->then != Then::kNothing;
}

}  // namespace

extern "C" {
ssize_t __real_write(int file, const void* data, size_t bytes);
int __real_fsync(int file);
int __real_rename(const char* from, const char* to);
int __real_unlink(const char* path);

ssize_t __wrap_write(int file, const void* data, size_t bytes) {
  if (Ambushed()) {
    if (g_ambush->then == Then::kFull) return errno = ENOSPC, -1;
    const auto part = static_cast<size_t>(g_ambush->written * static_cast<double>(bytes));
    if (__real_write(file, data, part) >= 0) raise(SIGKILL);
  }
  return __real_write(file, data, bytes);
}
int __wrap_fsync(int file) {
  if (Ambushed()) {
    if (g_ambush->then == Then::kFull) return errno = ENOSPC, -1;
    raise(SIGKILL);
  }
  return __real_fsync(file);
}
int __wrap_rename(const char* from, const char* to) {
  if (Ambushed() && g_ambush->then == Then::kKill) raise(SIGKILL);
  return __real_rename(from, to);
}
int __wrap_unlink(const char* path) {
  if (Ambushed() && g_ambush->then == Then::kKill) raise(SIGKILL);
  return __real_unlink(path);
}
}

namespace shardproof {
namespace {

// Who saves, and who loads what is left.
struct Engines {
  const char *saver, *loader;
};
std::ostream& operator<<(std::ostream& out, const Engines& engines) { return out << engines.saver; }
const Engines kShards{"w3.zero3.adamw.vocab8.ffn8.seq2.layers1",
                      "w2.zero1.adamw.vocab8.ffn8.seq2.layers1"};
// Values are still to be gathered when it saves; owners are others than those who load.
const Engines kLayerWise{"w3.lw.ogr.opg.bs1.muon.vocab8.ffn8.seq2.layers1",
                         "w2.lw.muon.vocab8.ffn8.seq2.layers1.aligned"};

class CheckpointCrashTest : public testing::TestWithParam<Engines> {
 protected:
  CheckpointCrashTest() {
    void* shared =
        mmap(nullptr, sizeof(Ambush), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw std::runtime_error("no shared memory");
    g_ambush = new (shared) Ambush;
  }
  ~CheckpointCrashTest() override { munmap(std::exchange(g_ambush, nullptr), sizeof(Ambush)); }

  ScriptResult Run(const std::string& id, const std::string& script) const {
    return RunEngineScript(id, folder_, script);
  }
  // Weights after a save of an earlier state and one of a later; operations at the end of each.
  void Rehearse() {
    Run(saver_, "t0s0");
    first_end_ = g_ambush->seen;
    before_ = Run(loader_, "l0").weights;
    std::filesystem::remove_all(folder_ + "/0");
    *g_ambush = {};
    Run(saver_, "t0s0t1s0");
    end_ = g_ambush->seen;
    after_ = Run(loader_, "l0").weights;
    ASSERT_NE(before_, after_);
    ASSERT_GT(first_end_, 10);
    ASSERT_GT(end_, first_end_ + 10);
  }
  // Runs the two saves in a process of its own. Returns whether it was killed.
  bool SaveAndDie(int64_t at, double written) {
    std::filesystem::remove_all(folder_ + "/0");
    *g_ambush = {Then::kKill, at, written, 0};
    const pid_t child = fork();
    if (child == 0) {
      Run(saver_, "t0s0t1s0");
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    *g_ambush = {};
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  bool IsThere() const { return std::filesystem::exists(folder_ + "/0/checkpoint.json"); }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();
  const std::string saver_ = GetParam().saver, loader_ = GetParam().loader;
  Weights before_, after_;
  int64_t first_end_ = 0, end_ = 0;
};

TEST_P(CheckpointCrashTest, KilledAtAHundredRandomMoments) {
  Rehearse();
  std::mt19937 random(5);
  enum Found { kNone, kBefore, kAfter };
  std::map<int64_t, Found> found;  // by operation
  for (int i = 0; i < 100; ++i) {
    const auto at = static_cast<int64_t>(1 + random() % static_cast<uint64_t>(end_));
    const double written = static_cast<double>(random() % 5) / 4;
    ASSERT_TRUE(SaveAndDie(at, written)) << at;
    const std::string where = "killed at operation " + std::to_string(at);
    const ScriptResult loaded = Run(loader_, "l0");
    if (!IsThere()) {
      found[at] = kNone;
      EXPECT_LE(at, first_end_) << where;
      for (const std::string& error : loaded.errors)
        EXPECT_NE(error.find("checkpoint.json"), std::string::npos) << where << ": " << error;
      continue;
    }
    for (const std::string& error : loaded.errors) EXPECT_EQ(error, "") << where;
    EXPECT_TRUE(loaded.weights == before_ || loaded.weights == after_) << where;
    found[at] = loaded.weights == before_ ? kBefore : kAfter;
    // The next save is not held up by what is left, and leaves one set of shards.
    if (i % 10 != 0) continue;
    const ScriptResult next = Run(loader_, "l0t2s0");
    EXPECT_EQ(Run(saver_, "l0").weights, next.weights) << where;
    int files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_ + "/0"))
      ++files;
    EXPECT_EQ(files, 3) << where;  // two shards and the index
  }
  // Once there, a checkpoint stays; all three kinds of moments were met.
  std::map<Found, int> met;
  Found last = kNone;
  for (const auto& [at, what] : found) {
    EXPECT_GE(what, last) << at;
    last = what;
    ++met[what];
  }
  EXPECT_GT(met[kNone], 3);
  EXPECT_GT(met[kBefore], 3);
  EXPECT_GT(met[kAfter], 0);  // there are few: the shards of the first are removed
}

// One rank cannot write: all say so, and which rank and file; the checkpoint before stays.
TEST_P(CheckpointCrashTest, FullDisk) {
  Rehearse();
  for (int64_t at = first_end_ + 1; at <= end_; ++at) {
    std::filesystem::remove_all(folder_ + "/0");
    *g_ambush = {Then::kFull, at, 0, 0};
    const ScriptResult saved = Run(saver_, "t0s0t1s0");
    *g_ambush = {};
    for (const std::string& error : saved.errors) EXPECT_EQ(error, saved.errors.front());
    const std::string& error = saved.errors.front();
    const ScriptResult loaded = Run(loader_, "l0");
    EXPECT_EQ(loaded.errors, std::vector<std::string>(2)) << at;
    if (error.empty()) {
      EXPECT_EQ(loaded.weights, after_) << at;  // only removals were left
      continue;
    }
    EXPECT_NE(error.find("save: rank "), std::string::npos) << error;
    EXPECT_NE(error.find("No space left on device"), std::string::npos) << error;
    EXPECT_TRUE(loaded.weights == before_ || loaded.weights == after_) << at << error;
  }
}

INSTANTIATE_TEST_SUITE_P(, CheckpointCrashTest, testing::Values(kShards, kLayerWise),
                         [](const auto& engines) {
                           return engines.index == 0 ? "Shards" : "LayerWise";
                         });

}  // namespace
}  // namespace shardproof
