// Runs of one rank in parts: what is seen across parts, what each part tells, and what takes the
// whole run.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/check_all.h"
#include "conformance/checks/in_parts_for_test.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// The host waits while it tears down, so destroy begins in one part and ends in another.
TEST(InPartsEndsTest, WhatDestroyLeavesBehindIsSeenAcrossParts) {
  const auto whole = [](bool frees) {
    TraceBuilder t(0, 1, "a program");
    t.CallBegin("create");
    const int stream = t.Stream("compute"), block = t.Alloc(stream, 64);
    t.DeviceSync();
    t.CallEnd("create");
    t.CallBegin("destroy");
    if (frees) t.Free(stream, block);
    for (int i = 0; i < 4; ++i) {
      t.StreamSync(stream);
      t.Explain("tears down");
    }
    t.StreamDestroy(stream);
    t.CallEnd("destroy");
    return WholeOrAlike(t.Done());
  };
  EXPECT_EQ(whole(true), "");
  EXPECT_NE(whole(false), "");
}

TEST(InPartsEndsTest, WhatIsNotFollowedTakesTheWholeRun) {
  const auto whole = [](int streams, int instance) {
    TraceBuilder t(0, 1, "a program");
    t.provides().calls = false;
    const int first = t.Stream("compute"), block = t.Alloc(first, 64);
    t.DeviceSync();
    t.Instance(instance);
    for (int i = 0; i < streams; ++i) {
      t.Launch(t.Stream("more"), SPF_K_FILL, {Writes(block, 0, 64)});
      t.DeviceSync();
    }
    const std::vector<Trace> run = {t.Done()};
    InParts got;
    ExpectAlike(run, 1, &got);
    return got.whole;
  };
  EXPECT_EQ(whole(40, 0), "");
  EXPECT_NE(whole(70, 0).find("more than 64"), std::string::npos);
  EXPECT_NE(whole(40, 1).find("instances"), std::string::npos);
}

// Kernels of streams with two priorities may overtake: that is said of each part.
TEST(InPartsEndsTest, PrioritiesOfStreamsAreKnownInEachPart) {
  std::vector<Trace> run;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2, "a program");
    t.provides().calls = false;
    const int dp = t.Group("dp", {0, 1}), twin = t.Group("dp_ag", {0, 1});
    const int one = t.Stream("one", 0), other = t.Stream("other", -1);
    t.DeviceSync();
    for (int step = 0; step < 3; ++step) {
      t.Collective(graph::kBarrier, dp, one, 0);
      t.DeviceSync();
    }
    t.Collective(graph::kBarrier, dp, one, 0);
    t.Collective(graph::kBarrier, twin, other, 0);
    t.DeviceSync();
    run.push_back(t.Done());
  }
  InParts got;
  ExpectAlike(run, 1, &got);
  EXPECT_EQ(got.whole, "");
  EXPECT_GT(got.parts, 2);
  EXPECT_NE(CheckAll(shardproof::Run{nullptr, run, {}, {}}).notes.at(0).find("not claimed"),
            std::string::npos);
}

// A script is one entry call.
TEST(InPartsEndsTest, EntryCallsOfAScriptAreJudged) {
  const auto whole = [](const char* call, int status, bool leaves) {
    TraceBuilder t(0, 1, "a program");
    t.CallBegin(call, call[0] == 't' ? 0 : -1);
    const int stream = t.Stream("compute"), event = t.EventCreate(), block = t.Alloc(stream, 64);
    for (int step = 0; step < 4; ++step) {
      t.Launch(stream, SPF_K_FILL, {Writes(block, 0, 64)});
      t.DeviceSync();
    }
    t.CallEnd(call, call[0] == 't' ? 0 : -1, status);
    t.CallBegin("destroy");
    t.Free(stream, block);
    if (!leaves) t.EventDestroy(event);
    t.StreamDestroy(stream);
    t.CallEnd("destroy");
    return WholeOrAlike(t.Done());
  };
  EXPECT_EQ(whole("create", SPF_OK, false), "");
  EXPECT_NE(whole("create", SPF_OK, true), "");
  EXPECT_NE(whole("create", SPF_FAILED, false), "");
  EXPECT_NE(whole("train_step", SPF_OK, false), "");
}

}  // namespace
}  // namespace shardproof
