// counts_test: how do row counts reach the host, and rows their rank, also when there are none?
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "conformance/abi/spf.hpp"
#include "conformance/fabric/sim/testing.h"
#include "conformance/host/host.h"

namespace shardproof {
namespace {

constexpr uint64_t kWidth = 4;

// Rows that rank `from` has for rank `to`; rank 1 gets none, rank 2 sends none.
int64_t RowsFor(int from, int to) { return to == 1 || from == 2 ? 0 : from + 2 * to + 1; }

// One rank's host inside train_step 0.
struct Bench {
  explicit Bench(Fabric& fabric)
      : model(ModelConfig{}, 64),
        recorder(fabric.rank(), fabric.world(), "counts", RecordLevel::kDigests),
        host(Config(fabric), fabric, recorder),
        h(host.table()) {
    host.BeginCall("train_step", 0);
  }
  HostConfig Config(Fabric& fabric) {
    HostConfig config;
    config.model = &model;
    config.data_ranks = fabric.world();
    config.data_rank = fabric.rank();
    config.groups = {{"world", "world", Everybody(fabric.world())},
                     {"ep", "ep", Everybody(fabric.world())}};
    return config;
  }
  spf_collective AllToAll(spf_stream stream, int32_t dtype, spf_addr send, spf_addr recv,
                          const std::vector<uint64_t>& sends, const std::vector<uint64_t>& receives,
                          spf_purpose purpose) {
    spf_collective op = spf::Host::Collective(SPF_ALL_TO_ALL_V, h.Group("ep"), stream,
                                              static_cast<spf_dtype>(dtype), send, recv, 0,
                                              spf::For(purpose, 1, 0));
    op.send_counts = sends.data();
    op.recv_counts = receives.data();
    return op;
  }
  Model model;
  Recorder recorder;
  Host host;
  spf::Host h;
};

uint64_t Sum(const std::vector<uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

// Sends every peer its count, reads the answers on the host, and sends the rows. Answers the rows
// received.
std::vector<float> Dispatch(Fabric& f) {
  Bench bench(f);
  spf::Host& h = bench.h;
  const auto n = static_cast<size_t>(f.world());
  const spf_stream compute = h.Stream("compute"), a2a = h.Stream("a2a");
  const spf_addr mine = h.Alloc(compute, 8 * n, spf::For(SPF_FOR_EXPERT_COUNTS)),
                 theirs = h.Alloc(compute, 8 * n, spf::For(SPF_FOR_EXPERT_COUNTS)),
                 pinned = h.Alloc(compute, 8 * n, spf::For(SPF_FOR_EXPERT_COUNTS), SPF_PINNED);
  std::vector<uint64_t> sends;
  for (size_t to = 0; to < n; ++to) {
    sends.push_back(kWidth * static_cast<uint64_t>(RowsFor(f.rank(), static_cast<int>(to))));
    h.Launch(compute, SPF_K_FILL, {{mine + 8 * to, 1, SPF_I64, SPF_WRITE}},
             {static_cast<double>(RowsFor(f.rank(), static_cast<int>(to)))});
  }
  const std::vector<uint64_t> ones(n, 1);
  const spf_collective counts =
      bench.AllToAll(compute, SPF_I64, mine, theirs, ones, ones, SPF_FOR_EXPERT_COUNTS);
  spf::Check(h.raw()->communicate(h.raw(), 1, &counts));
  h.Copy(compute, pinned, theirs, 8 * n);
  const spf_event copied = h.Event();
  h.Record(copied, compute);
  spf::Check(h.raw()->event_sync(h.raw(), copied));
  const int64_t* known = h.Touch<int64_t>(pinned, n, SPF_READ);
  std::vector<uint64_t> receives;
  for (size_t from = 0; from < n; ++from)
    receives.push_back(kWidth * static_cast<uint64_t>(known[from]));

  spf_addr rows = h.Alloc(compute, 4 * Sum(sends), spf::For(SPF_FOR_EXPERT_TOKENS));
  h.Launch(compute, SPF_K_FILL, {{rows, Sum(sends), SPF_F32, SPF_WRITE}},
           {static_cast<double>(f.rank() + 1)});
  spf_addr dispatched = h.Alloc(compute, 4 * Sum(receives), spf::For(SPF_FOR_EXPERT_TOKENS));
  const spf_addr host_rows =
      h.Alloc(compute, 4 * Sum(receives) + 4, spf::For(SPF_FOR_EXPERT_TOKENS), SPF_PINNED);
  h.After(a2a, compute);
  const spf_collective tokens =
      bench.AllToAll(a2a, SPF_F32, rows, dispatched, sends, receives, SPF_FOR_EXPERT_TOKENS);
  spf::Check(h.raw()->communicate(h.raw(), 1, &tokens));
  spf::Check(h.raw()->copy(h.raw(), a2a, host_rows, dispatched, 4 * Sum(receives)));
  h.Sync(a2a);
  const float* got = h.Touch<float>(host_rows, Sum(receives), SPF_READ);
  std::vector<float> all(got, got + (got == nullptr ? 0 : Sum(receives)));
  spf::Check(h.raw()->mem_free(h.raw(), a2a, rows));  // 0 where there are none
  spf::Check(h.raw()->mem_free(h.raw(), a2a, dispatched));
  EXPECT_EQ(bench.host.refusals(), 0) << bench.host.first_refusal();
  bench.host.EndCall(SPF_OK);
  return all;
}

TEST(Counts, ReachTheHostByCopyEventAndAccessAndGovernTheRows) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (int n = 1; n <= 8; ++n) {
      const SimResult result = RunSim(n, With(policy), [&](Fabric& f) {
        std::vector<float> expected;
        for (int from = 0; from < n; ++from) {
          expected.insert(expected.end(), kWidth * static_cast<uint64_t>(RowsFor(from, f.rank())),
                          static_cast<float>(from + 1));
        }
        EXPECT_EQ(Dispatch(f), expected);
      });
      EXPECT_FALSE(result.deadlock);
      EXPECT_TRUE(result.mismatches.empty());
      for (const std::string& error : result.errors) EXPECT_EQ(error, "");
    }
  }
}

TEST(Counts, NothingHasNoAddress) {
  RunSim(1, SimOptions{}, [](Fabric& f) {
    Bench bench(f);
    spf_host* h = bench.h.raw();
    const spf_stream stream = bench.h.Stream("main");
    EXPECT_EQ(bench.h.Alloc(stream, 0, spf::For(SPF_FOR_EXPERT_TOKENS)), 0u);
    EXPECT_EQ(h->copy(h, stream, 0, 0, 0), SPF_OK);
    EXPECT_EQ(h->mem_free(h, stream, 0), SPF_OK);
    void* out = &bench;
    EXPECT_EQ(h->host_access(h, 0, 0, SPF_READ, &out), SPF_OK);
    EXPECT_EQ(out, nullptr);
    for (const int32_t kernel : {SPF_K_FILL, SPF_K_DISCARD}) {
      const spf_span span = {0, 0, SPF_F32, SPF_WRITE};
      const double value = 1;
      spf_launch launch{};
      launch.size = sizeof launch;
      launch.kernel = kernel;
      launch.n_spans = 1;
      launch.spans = &span;
      launch.n_scalars = kernel == SPF_K_FILL ? 1 : 0;
      launch.scalars = &value;
      EXPECT_EQ(h->launch(h, stream, &launch), SPF_OK);
    }
    // One byte is something: its address is looked at.
    EXPECT_EQ(h->copy(h, stream, 0, 0, 1), SPF_REFUSED);
    EXPECT_EQ(bench.host.refusals(), 1);
    bench.h.Sync(stream);
    bench.host.EndCall(SPF_OK);
  });
}

// A hang names what is exchanged, for which module and microbatch.
TEST(Counts, AHangNamesModuleAndMicrobatch) {
  const SimResult result = RunSim(2, SimOptions{}, [](Fabric& f) {
    Bench bench(f);
    const spf_stream stream = bench.h.Stream("a2a");
    const std::vector<uint64_t> none(2, 0);
    const spf_collective op =
        bench.AllToAll(stream, SPF_F32, 0, 0, none, none, SPF_FOR_EXPERT_TOKENS);
    if (f.rank() == 0) spf::Check(bench.h.raw()->communicate(bench.h.raw(), 1, &op));
    EXPECT_EQ(bench.h.raw()->stream_sync(bench.h.raw(), stream),
              f.rank() == 0 ? SPF_ABORTED : SPF_OK);
  });
  EXPECT_TRUE(result.deadlock);
  const std::string name = Model(ModelConfig{}, 64).Tables(0).modules[1].name;
  EXPECT_NE(result.blocked[0].find("all_to_all_v of expert_tokens (" + name +
                                   ", microbatch 0) on ep, stream a2a"),
            std::string::npos)
      << result.blocked[0];
}

}  // namespace
}  // namespace shardproof
