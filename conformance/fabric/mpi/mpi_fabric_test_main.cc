// Run under mpirun with several sizes: see BUILD. "bench" as argument: only the measurements.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

#include "conformance/fabric/mpi/suite_for_test.h"

namespace shardproof::mpi_test {
namespace {

void Blobs(Suite& suite) {
  const CaseEnd end = suite.Run(suite.world->size(), [](Fabric& f) {
    return std::string(5 << 20, static_cast<char>('a' + f.rank()));
  });
  if (suite.world->rank() != 0) return;
  for (size_t rank = 0; rank < end.ranks.size(); ++rank) {
    suite.Expect(end.ranks[rank].blob == std::string(5 << 20, static_cast<char>('a' + rank)),
                 "5 MB come back", std::to_string(end.ranks[rank].blob.size()));
  }
}

void FewerRanks(Suite& suite) {
  for (int n = 1; n < suite.world->size(); n += 2) {
    suite.ExpectOk(suite.Run(n, HealthyMain), "a case with fewer ranks");
  }
  const std::string text =
      suite.world->Broadcast(suite.world->rank() == 0 ? std::string(100000, 'x') : "no");
  suite.Expect(text == std::string(100000, 'x'), "broadcast");
}

// The last rank is the first member: it is sent what others send to one of them.
std::string LastRankFirst(Fabric& f) {
  std::vector<int32_t> ranks = Everybody(f);
  std::reverse(ranks.begin(), ranks.end());
  int32_t group = -1;
  std::string key;
  const int32_t stream = f.CreateStream("s", 0), world = f.OpenGroup("backwards", ranks);
  if (f.CreateGroup(world, ranks, &group, &key) != SPF_OK) return "create failed";
  const std::string wrong = TryCollective(f, stream, group, f.world() - 1 - f.rank(), f.world(),
                                          {SPF_ALL_GATHER, SPF_F32, 7});
  return wrong.empty() ? "ok" : wrong;
}

// Rank 0 ends cases alone; then the others send to the last rank, which has not heard of these yet.
void OneRankComesLate(Suite& suite) {
  if (suite.world->size() < 3) return;
  for (int i = 0; i < 3; ++i) {
    const timespec nap{0, 200'000'000};
    if (suite.world->rank() == suite.world->size() - 1) nanosleep(&nap, nullptr);
    for (int alone = 0; alone < 8; ++alone)
      suite.ExpectOk(suite.Run(1, HealthyMain), "a case of one rank");
    suite.ExpectOk(suite.Run(suite.world->size(), LastRankFirst), "all, and one of them late");
  }
}

constexpr double kLongUs = 2e6;

MpiOptions WithLongWork(const Suite& suite) {
  MpiOptions options = suite.options;
  options.lasts_us = [](std::string_view what, double took_us) {
    return what == "long" ? kLongUs : took_us;
  };
  return options;
}

// Work that lasts ends no earlier, holds back what is behind it on its stream and nothing else, and
// is no deadlock, though every thread of every rank sleeps meanwhile. A busy machine may be late
// with what is beside it, but not each time.
void WorkThatLasts(Suite& suite) {
  const auto main = [](Fabric& f) -> std::string {
    using Clock = std::chrono::steady_clock;
    const int32_t world = f.OpenGroup("world", Everybody(f)), a = f.CreateStream("a", 0),
                  b = f.CreateStream("b", 0);
    const Block x = f.Alloc(b, 64, false);
    std::string log;
    const auto began = Clock::now();
    const auto since = [began] {
      return std::chrono::duration<double, std::micro>(Clock::now() - began).count();
    };
    double beside_us = 0;
    f.Enqueue(a, "long", [&] { log += "L"; });
    f.Enqueue(a, "behind", [&] { log += "A"; });
    for (int i = 0; i < 3; ++i) {
      f.Communicate({Simple(SPF_ALL_REDUCE, world, b, x, "sum")});
      f.Enqueue(b, "beside", [&] {
        log += "B";
        beside_us = since();
      });
    }
    if (f.SyncStream(a) != SPF_OK || f.SyncStream(b) != SPF_OK) return "aborted";
    if (since() < kLongUs) return "it ended after " + std::to_string(since()) + " us";
    if (beside_us >= kLongUs) return "late";
    return log == "LBBBA" ? "ok" : log;
  };
  CaseEnd end;
  for (int attempt = 0; attempt < 5; ++attempt) {
    end = suite.world->RunCase(suite.world->size(), WithLongWork(suite), main);
    const bool late = std::any_of(end.ranks.begin(), end.ranks.end(),
                                  [](const RankEnd& rank) { return rank.blob == "late"; });
    if (suite.world->Broadcast(late ? "late" : "") != "late") break;
  }
  suite.ExpectOk(end, "work that lasts");
}

// Communication goes on while a body runs apart: this one ends no earlier. Nor is a body a deadlock
// while nothing else happens.
void CommunicationBesideABody(Suite& suite) {
  MpiOptions options = suite.options;
  options.apart = [](std::string_view what) { return what.starts_with("waits"); };
  const CaseEnd end =
      suite.world->RunCase(suite.world->size(), options, [](Fabric& f) -> std::string {
        const int32_t world = f.OpenGroup("world", Everybody(f)), a = f.CreateStream("a", 0),
                      b = f.CreateStream("b", 0);
        const Block x = f.Alloc(b, sizeof(float), false);
        auto* sum = reinterpret_cast<float*>(x.host);
        const auto whole = static_cast<float>(f.world());
        std::atomic_ref<float> seen(*sum);
        f.Enqueue(b, "one", [&] { seen = 1; });
        if (f.SyncStream(b) != SPF_OK) return "aborted";
        f.Enqueue(a, "waits for what is beside it", [&] {
          while (seen != whole) std::this_thread::yield();
          const timespec nap{0, 500'000'000};
          nanosleep(&nap, nullptr);
        });
        CommOp op = Simple(SPF_ALL_REDUCE, world, b, x, "sum");
        op.count = 1;
        f.Communicate({op});
        return f.SyncStream(a) == SPF_OK ? "ok" : "aborted";
      });
  suite.ExpectOk(end, "communication beside a body");
}

// A case that is ended meanwhile does not wait for work that would last for hours.
void EndedWhileWorkLasts(Suite& suite) {
  MpiOptions options = suite.options;
  options.lasts_us = [](std::string_view, double) { return 1e10; };
  const CaseEnd end =
      suite.world->RunCase(suite.world->size(), options, [](Fabric& f) -> std::string {
        const int32_t a = f.CreateStream("a", 0);
        f.Enqueue(a, "long", [] {});
        if (f.rank() == 0) f.Fail("enough");
        return f.SyncStream(a) == SPF_ABORTED ? "aborted" : "not aborted";
      });
  if (suite.world->rank() != 0) return;
  for (const RankEnd& rank : end.ranks)
    suite.Expect(rank.blob == "aborted", "ended while work lasts", rank.blob + rank.detail);
}

void ManyCases(Suite& suite, int cases) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < cases; ++i) suite.ExpectHealthy();
  const double ms =
      1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() / cases;
  if (suite.world->rank() == 0)
    std::printf("%d cases, n=%d: %.2f ms each\n", cases, suite.world->size(), ms);
}

void Latency(Suite& suite) {
  const CaseEnd end = suite.Run(suite.world->size(), [](Fabric& f) -> std::string {
    const int32_t world = f.OpenGroup("world", Everybody(f)), s = f.CreateStream("s", 0);
    const uint64_t bytes = 256 << 10;
    const Block x = f.Alloc(s, bytes, false);
    CommOp op = Simple(SPF_ALL_GATHER, world, s, x, "gather");
    op.count = bytes / 4 / static_cast<uint64_t>(f.world());
    op.send = x.host + static_cast<uint64_t>(f.rank()) * op.count * 4;
    for (int i = 0; i < 5; ++i) f.Communicate({op});
    f.Drain();
    const auto began = std::chrono::steady_clock::now();
    constexpr int kRounds = 100;
    for (int i = 0; i < kRounds; ++i) {
      f.Communicate({op});
      if (f.SyncStream(s) != SPF_OK) return "aborted";
    }
    return std::to_string(
        1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() /
        kRounds);
  });
  if (suite.world->rank() == 0) {
    std::printf("all-gather of 256 KB (result), n=%d: %s ms\n", suite.world->size(),
                end.ranks[0].blob.c_str());
  }
}

int Run(int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  Suite suite{.world = &world};
  suite.options.stall_seconds = 1;
  const std::string what = argc > 1 ? argv[1] : "all";
  if (what == "abort") {
    std::cerr << "a last word\n";
    world.Abort(2);
  }
  if (what == "bench") {
    Latency(suite);
    ManyCases(suite, 200);
  } else {
    CheckOperations(suite);
    CheckEndings(suite);
    Blobs(suite);
    FewerRanks(suite);
    OneRankComesLate(suite);
    WorkThatLasts(suite);
    CommunicationBesideABody(suite);
    EndedWhileWorkLasts(suite);
    ManyCases(suite, 200);
  }
  if (world.rank() == 0)
    std::printf("n=%d: %d checks, %d failures\n", world.size(), suite.checks, suite.failures);
  return world.Leave(suite.failures ? 1 : 0);
}

}  // namespace
}  // namespace shardproof::mpi_test

int main(int argc, char** argv) { return shardproof::mpi_test::Run(argc, argv); }
