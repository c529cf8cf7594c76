// Cases that end badly: each is named for what it is, and a healthy case follows in the same job.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "conformance/fabric/in_device_work.h"
#include "conformance/fabric/mpi/suite_for_test.h"

namespace shardproof::mpi_test {
namespace {

void OppositeOrderHangs(Suite& suite) {
  const int n = suite.world->size();
  if (n < 2) return;
  const CaseEnd end = suite.Run(n, [](Fabric& f) -> std::string {
    const int32_t a = f.OpenGroup("a", Everybody(f)), b = f.OpenGroup("b", Everybody(f));
    const int32_t s = f.CreateStream("comm", 0);
    const Block x = f.Alloc(s, 40, false), y = f.Alloc(s, 40, false);
    const bool swap = f.rank() == 1;
    f.Communicate(
        {Simple(SPF_ALL_REDUCE, swap ? b : a, s, x, swap ? "reduce on b" : "reduce on a")});
    f.Communicate(
        {Simple(SPF_ALL_REDUCE, swap ? a : b, s, y, swap ? "reduce on a" : "reduce on b")});
    return f.SyncStream(s) == SPF_ABORTED ? "aborted" : "not aborted";
  });
  suite.Expect(end.hang, "opposite order of two collectives hangs", end.hang_report);
  suite.Expect(Has(end.hang_report, "rank 0 waits for rank 1, which waits for rank 0"),
               "the cycle is named", end.hang_report);
  suite.Expect(Has(end.hang_report, "blocked in stream_sync of comm"), "the blocking call is named",
               end.hang_report);
  suite.Expect(
      Has(end.hang_report, "reduce on a on comm (stream 0) on communicator a has started here"),
      "the operation is named", end.hang_report);
  for (const RankEnd& rank : end.ranks) {
    if (suite.world->rank() != 0) break;
    suite.Expect(rank.kind == RankEnd::kHung && rank.returned && rank.blob == "aborted",
                 "hung ranks hand in what they have",
                 ToText(rank.kind) + (": " + rank.detail + rank.blob));
  }
  if (suite.world->rank() == 0)
    std::printf("--- a hang report:\n%s\n---\n", end.hang_report.c_str());
}

void HalfMissingHangs(Suite& suite) {
  const int n = suite.world->size();
  if (n < 2) return;
  const CaseEnd end = suite.Run(n, [](Fabric& f) -> std::string {
    const int32_t world = f.OpenGroup("world", Everybody(f)), s = f.CreateStream("s", 0);
    const Block x = f.Alloc(s, 40, false);
    if (f.rank() != 0) f.Communicate({Simple(SPF_ALL_REDUCE, world, s, x, "a reduce")});
    f.SyncStream(s);
    return "ok";
  });
  suite.Expect(end.hang && Has(end.hang_report, "rank 1 waits for rank 0, which has returned"),
               "a collective that rank 0 never issues", end.hang_report);
  const CaseEnd create = suite.Run(n, [](Fabric& f) -> std::string {
    const int32_t world = f.OpenGroup("world", Everybody(f));
    int32_t group = -1;
    std::string key;
    if (f.rank() == 0) f.CreateGroup(world, {0}, &group, &key);
    return "ok";
  });
  suite.Expect(create.hang &&
                   Has(create.hang_report, "rank 0: blocked in group_create #0 on world") &&
                   Has(create.hang_report, "not been made yet by rank"),
               "a group_create that only rank 0 makes", create.hang_report);
}

// A member that does not register is missed, also by those that registered with another group
// first.
void RegistrationsThatDoNotMeet(Suite& suite) {
  if (suite.world->size() < 2) return;
  for (const bool opposite : {false, true}) {
    const CaseEnd end = suite.Run(suite.world->size(), [opposite](Fabric& f) -> std::string {
      const int32_t world = f.OpenGroup("world", Everybody(f)),
                    twin = f.OpenGroup("twin", Everybody(f));
      const Block block = f.AllocRegistrable(f.CreateStream("s", 0), 40);
      const bool odd = f.rank() == 1;
      if (odd && !opposite) return "ok";
      f.RegisterBlock(odd ? twin : world, block);
      return f.RegisterBlock(odd ? world : twin, block) == SPF_ABORTED ? "aborted" : "not aborted";
    });
    suite.Expect(end.hang && Has(end.hang_report, "rank 0: blocked in group_register #0 on world"),
                 opposite ? "registrations with two groups in opposite order hang"
                          : "a registration that rank 1 leaves out hangs",
                 end.hang_report);
  }
}

void MismatchIsNamed(Suite& suite) {
  const int n = suite.world->size();
  if (n < 2) return;
  const CaseEnd end = suite.Run(n, [](Fabric& f) -> std::string {
    const int32_t world = f.OpenGroup("world", Everybody(f)), s = f.CreateStream("s", 0);
    const Block x = f.Alloc(s, 4000, false), y = f.Alloc(s, 400000, false);
    CommOp op = Simple(f.rank() == 1 ? SPF_ALL_GATHER : SPF_REDUCE_SCATTER, world, s, x, "odd");
    op.count = f.rank() == 1 ? 1000 : 100;
    op.recv = y.host;
    f.Communicate({op});
    f.Drain();
    return "ok";
  });
  bool named = false;
  std::string seen;
  for (const std::string& text : end.mismatches) {
    named = named || (Has(text, "rank 1 against rank 0") && Has(text, "all_gather") &&
                      Has(text, "reduce_scatter"));
    seen += text + "\n";
  }
  suite.Expect(!end.hang && named, "two different collectives at one place are named", seen);
}

void SpinForever() {
  std::atomic<int> turns{0};
  while (turns.fetch_add(1) != -1) {
  }
}

// The others have waited longer than it by then.
void WorkAndSleepForever(Fabric& f) {
  const int32_t s = f.CreateStream("s", 0);
  for (int i = 0; i < 100; ++i) {
    f.Enqueue(s, "work", [] { usleep(10000); });
    f.SyncStream(s);
  }
  while (true) pause();
}

struct Misdeed {
  std::string name;
  std::function<void(Fabric&)> act;
  RankEnd::Kind kind;
  std::string detail;
  const char* function = nullptr;  // that the stack must tell
};

std::vector<Misdeed> Misdeeds() {
  return {
      {"segfault on device memory",
       [](Fabric& f) {
         const int32_t s = f.CreateStream("s", 0);
         const Block block = f.Alloc(s, 256, false);
         *reinterpret_cast<volatile char*>(block.address + 12) = 1;
       },
       RankEnd::kSignal, "SIGSEGV"},
      {"abort", [](Fabric&) { std::abort(); }, RankEnd::kSignal, "SIGABRT"},
      {"exit(0)", [](Fabric&) { std::exit(0); }, RankEnd::kExit, "exit(0) was called"},
      {"_exit(3)", [](Fabric&) { _exit(3); }, RankEnd::kExit, "exit code 3"},
      {"SIGKILL", [](Fabric&) { raise(SIGKILL); }, RankEnd::kSignal, "SIGKILL"},
      {"a throw", [](Fabric&) { throw std::runtime_error("deliberate"); }, RankEnd::kException,
       "deliberate"},
      {"a throw in a body",
       [](Fabric& f) {
         const int32_t s = f.CreateStream("s", 0);
         f.Enqueue(s, "thrower", [] { throw EngineThrew("in a body"); });
         f.SyncStream(s);
       },
       RankEnd::kException, "in device work: in a body"},
      {"a throw of the suite in a body",
       [](Fabric& f) {
         const int32_t s = f.CreateStream("s", 0);
         f.Enqueue(s, "thrower", [] { throw std::runtime_error("no memory"); });
         f.SyncStream(s);
       },
       RankEnd::kException, "in the suite's code, in device work: no memory"},
      {"an endless loop", [](Fabric&) { SpinForever(); }, RankEnd::kHung, "in engine code",
       "\nit was in shardproof::mpi_test::(anonymous namespace)::SpinForever()"},
      {"a sleep without end", WorkAndSleepForever, RankEnd::kHung, "without progress",
       "\nit was in pause (libc.so.6)"},
      // A signal would end such a sleep, and the rank would go on.
      {"one long sleep", [](Fabric&) { sleep(10'000); }, RankEnd::kHung, "without progress",
       "\nit was in clock_nanosleep"},
      {"an endless body",
       [](Fabric& f) {
         f.Enqueue(f.CreateStream("s", 0), "spinner", [] { SpinForever(); });
         f.Drain();
       },
       RankEnd::kHung, "its device runs spinner"},
  };
}

void MisdeedsAreFindings(Suite& suite) {
  const int n = suite.world->size();
  for (const Misdeed& misdeed : Misdeeds()) {
    const CaseEnd end = suite.Run(n, [&, n](Fabric& f) -> std::string {
      const int32_t world = f.OpenGroup("world", Everybody(f)), s = f.CreateStream("s", 0);
      const Block x = f.Alloc(s, 40, false);
      if (f.rank() == n - 1) misdeed.act(f);
      f.Communicate({Simple(SPF_ALL_REDUCE, world, s, x, "a reduce")});
      return f.SyncStream(s) == SPF_OK ? "ok" : "aborted";
    });
    if (suite.world->rank() == 0) {
      const RankEnd& culprit = end.ranks.back();
      const std::string seen = std::string(ToText(culprit.kind)) + ": " + culprit.detail;
      suite.Expect(culprit.kind == misdeed.kind && Has(culprit.detail, misdeed.detail),
                   misdeed.name, seen);
      suite.Expect(end.hang == (misdeed.kind == RankEnd::kHung), misdeed.name + ": a hang or not",
                   end.hang_report);
      suite.Expect(misdeed.function == nullptr || Has(culprit.detail, misdeed.function),
                   misdeed.name + ": the function is told", seen);
      for (int rank = 0; rank < n - 1; ++rank) {
        const RankEnd& other = end.ranks[static_cast<size_t>(rank)];
        suite.Expect(other.kind == (end.hang ? RankEnd::kHung : RankEnd::kAborted) &&
                         other.blob == "aborted",
                     misdeed.name + ": the others are aborted and hand in what they have",
                     std::string(ToText(other.kind)) + ": " + other.detail);
        suite.Expect(!Has(other.detail, "without progress"),
                     misdeed.name + ": who waits for it is not blamed", other.detail);
      }
      if (n > 1 || misdeed.kind != RankEnd::kHung)
        std::printf("%s -> %s\n", misdeed.name.c_str(), seen.c_str());
    }
    suite.ExpectHealthy();
  }
}

void FailEndsAll(Suite& suite) {
  const int n = suite.world->size();
  if (n < 2) return;
  const CaseEnd end = suite.Run(n, [](Fabric& f) -> std::string {
    const int32_t world = f.OpenGroup("world", Everybody(f)), s = f.CreateStream("s", 0);
    const Block x = f.Alloc(s, 40, false);
    if (f.rank() == 1) {
      f.Fail("refused: bad stream");
      return "failed";
    }
    f.Communicate({Simple(SPF_ALL_REDUCE, world, s, x, "a reduce")});
    return f.SyncStream(s) == SPF_ABORTED ? "aborted" : "ok";
  });
  if (suite.world->rank() != 0) return;
  suite.Expect(!end.hang && end.ranks[1].kind == RankEnd::kReturned &&
                   end.ranks[1].blob == "failed" && Has(end.ranks[1].detail, "refused: bad stream"),
               "a rank that fails returns by itself", end.ranks[1].detail);
  suite.Expect(end.ranks[0].kind == RankEnd::kAborted && end.ranks[0].blob == "aborted" &&
                   Has(end.ranks[0].detail, "refused: bad stream"),
               "the others are told why", end.ranks[0].detail);
}

}  // namespace

void CheckEndings(Suite& suite) {
  OppositeOrderHangs(suite);
  HalfMissingHangs(suite);
  RegistrationsThatDoNotMeet(suite);
  MismatchIsNamed(suite);
  FailEndsAll(suite);
  MisdeedsAreFindings(suite);
}

}  // namespace shardproof::mpi_test
