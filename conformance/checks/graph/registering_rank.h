// registering_rank.h: how do tests say in a line what three ranks register and use?
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/testing/shown.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {

inline constexpr int kWorld = 3;

// Three ranks with a communicator and its twin, and two blocks each that can be registered.
struct RegisteringRank {
  explicit RegisteringRank(int me) : trace(me, kWorld), rank(me) {
    dp = trace.Group("dp_cp", {0, 1, 2});
    twin = trace.Group("dp_cp_ag", {0, 1, 2});
    stream = trace.Stream("comm");
    small = trace.Alloc(stream, 64, {}, SPF_REGISTRABLE);
    large = trace.Alloc(stream, 256, {}, SPF_REGISTRABLE);
    plain = trace.Alloc(stream, 256);
  }
  void RegisterBoth() { trace.GroupRegister(dp, small), trace.GroupRegister(dp, large); }
  // 4 elements of each of the three members.
  void AllGather(const Range& from, const Range& to) {
    trace.Collective(SPF_ALL_GATHER, dp, stream, 4, {from, to});
  }
  void ReduceScatter(const Range& from, const Range& to) {
    trace.Collective(SPF_REDUCE_SCATTER, dp, stream, 4, {from, to});
  }
  void AllReduce(int block, int64_t offset = 0) {
    trace.Collective(SPF_ALL_REDUCE, dp, stream, 8,
                     {Reads(block, offset, 32), Writes(block, offset, 32)});
  }
  // Sends bytes of one block to this rank itself and no other.
  void Exchange(const std::vector<Range>& ranges) {
    CollectiveOptions options;
    for (int to = 0; to < kWorld; ++to) options.send_counts.push_back(to == rank ? 4 : 0);
    options.recv_counts = options.send_counts;
    trace.Collective(SPF_ALL_TO_ALL_V, dp, stream, 0, ranges, options);
  }
  void Message(int kind, int peer, const Range& range) {
    CollectiveOptions options;
    options.peer = peer;
    trace.Collective(kind, dp, stream, 4, {range}, options);
  }

  TraceBuilder trace;
  int rank, dp = 0, twin = 0, stream = 0, small = 0, large = 0, plain = 0;
};

inline std::vector<Trace> TracesOf(const std::function<void(RegisteringRank&)>& program) {
  std::vector<Trace> traces;
  for (int me = 0; me < kWorld; ++me) {
    RegisteringRank rank(me);
    program(rank);
    traces.push_back(rank.trace.Done());
  }
  return traces;
}

inline CheckResult Check(const std::function<void(RegisteringRank&)>& program) {
  return Shown(CheckMatching(TracesOf(program)));
}

// Exactly this finding, or none if requirement is empty; the message has what a person needs.
inline void Expect(const CheckResult& result, const std::string& requirement, int rank = -1,
                   const std::vector<std::string>& parts = {}) {
  for (const NotCheckable& one : result.not_checkable)
    EXPECT_NE(one.requirement, requirement) << one.why;
  std::string seen;
  for (const Finding& finding : result.findings)
    seen += finding.requirement + " " + finding.message + "\n";
  ASSERT_EQ(result.findings.size(), requirement.empty() ? 0u : 1u) << seen;
  if (requirement.empty()) return;
  EXPECT_EQ(result.findings[0].requirement, requirement) << seen;
  EXPECT_EQ(result.findings[0].rank, rank) << seen;
  for (const std::string& part : parts) EXPECT_NE(seen.find(part), std::string::npos) << seen;
}

}  // namespace shardproof
