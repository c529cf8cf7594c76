#include "conformance/checks/lifetime/user_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/checks/lifetime/lifetime.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

using Uses = std::map<int32_t, std::set<int32_t>>;  // by block: groups whose collectives use it

Uses UsesIn(const Trace& trace) {
  Uses uses;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCollective) continue;
    for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i)
      uses[trace.ranges[i].alloc].insert(event.group);
  }
  return uses;
}

Event Registration(const Event& beside, EventKind kind, int32_t group) {
  Event event = beside;
  event.kind = kind;
  event.stream = -1;
  event.group = group;
  event.ranges = {};
  return event;
}

// The trace of an engine that registers blocks with these groups where it allocates them.
void Register(Trace& trace, const Uses& uses) {
  std::vector<Event> events;
  for (const Event& event : trace.events) {
    const auto use = uses.find(event.alloc);
    const bool frees = event.kind == EventKind::kFree, allocates = event.kind == EventKind::kAlloc;
    if (frees && use != uses.end()) {
      for (int32_t group : use->second)
        events.push_back(Registration(event, EventKind::kGroupDeregister, group));
    }
    events.push_back(event);
    if (!allocates || use == uses.end()) continue;
    events.back().id = SPF_REGISTRABLE;
    for (int32_t group : use->second) {
      events.push_back(Registration(event, EventKind::kGroupRegister, group));
      events.back().count = event.count;
    }
  }
  trace.events = std::move(events);
}

MiniRun Mini(int32_t world, const std::function<void(InstanceSpec&)>& edit = {}) {
  return RunMini(MiniCase(world, [&](InstanceSpec& spec) {
    spec.nccl_ub = true;
    if (edit) edit(spec);
  }));
}

MiniRun Registered(int32_t world, const std::function<void(InstanceSpec&)>& edit = {}) {
  MiniRun mini = Mini(world, edit);
  for (Trace& trace : mini.run.traces) Register(trace, UsesIn(trace));
  return mini;
}

TEST(UserBuffers, ARunWithRegisteredBlocksHasNoFinding) {
  for (const GatherTwin twin : {GatherTwin::kNone, GatherTwin::kGiven}) {
    const MiniRun mini = Registered(4, [&](InstanceSpec& spec) {
      spec.outer = 2;
      spec.twin = twin;
    });
    const CheckResult result = CheckUserBuffers(mini.run);
    EXPECT_EQ(FoundIn(result), "");
    EXPECT_TRUE(result.judged.contains("FS-43"));
  }
}

TEST(UserBuffers, AnEngineThatReadsTheKnobAndIgnoresItIsFound) {
  const MiniRun mini = Mini(2);
  const CheckResult result = CheckUserBuffers(mini.run);
  EXPECT_EQ(FoundIn(result), "FS-43");
  ASSERT_FALSE(result.findings.empty());
  EXPECT_NE(result.findings[0].seen.find("which is not registered"), std::string::npos)
      << result.findings[0].seen;
}

TEST(UserBuffers, WithoutTheKnobNothingIsJudged) {
  const MiniRun mini = Mini(2, [](InstanceSpec& spec) { spec.nccl_ub = false; });
  const CheckResult result = CheckUserBuffers(mini.run);
  EXPECT_TRUE(result.judged.empty() && result.findings.empty() && result.not_checkable.empty());
}

// Blocks that the first collectives of both kinds send from and receive into.
std::set<int32_t> FirstBlocks(const Trace& trace) {
  std::set<int32_t> blocks;
  for (const uint8_t kind : {SPF_ALL_GATHER, SPF_REDUCE_SCATTER}) {
    const auto first =
        std::find_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
          return event.kind == EventKind::kCollective && event.collective == kind;
        });
    if (first == trace.events.end()) continue;
    for (uint32_t i = first->ranges.begin; i < first->ranges.end; ++i)
      blocks.insert(trace.ranges[i].alloc);
  }
  return blocks;
}

TEST(UserBuffers, OneBlockThatIsNotRegisteredIsNamed) {
  const std::set<int32_t> blocks = FirstBlocks(Mini(2).run.traces[1]);
  ASSERT_GE(blocks.size(), 4u) << "what is sent and what is received, gathered and reduced";
  for (const int32_t block : blocks) {
    MiniRun mini = Mini(2);
    Uses all_but_one = UsesIn(mini.run.traces[1]);
    all_but_one.erase(block);
    Register(mini.run.traces[0], UsesIn(mini.run.traces[0]));
    Register(mini.run.traces[1], all_but_one);
    const CheckResult result = CheckUserBuffers(mini.run);
    EXPECT_EQ(FoundIn(result), "FS-43") << "block " << block;
    for (const Finding& finding : result.findings) {
      EXPECT_EQ(finding.rank, 1);
      EXPECT_NE(finding.seen.find("block " + std::to_string(block) + ","), std::string::npos)
          << finding.seen;
    }
  }
}

TEST(UserBuffers, GatheredOnATwinWithWhichNothingIsRegistered) {
  MiniRun mini = Mini(2, [](InstanceSpec& spec) { spec.twin = GatherTwin::kGiven; });
  for (Trace& trace : mini.run.traces) {
    int32_t reducer = -1;
    for (size_t g = 0; g < trace.groups.size(); ++g) {
      if (trace.groups[g].name == "dp_cp") reducer = static_cast<int32_t>(g);
    }
    Uses uses = UsesIn(trace);
    for (auto& [block, groups] : uses) groups = {reducer};
    Register(trace, uses);
  }
  const CheckResult result = CheckUserBuffers(mini.run);
  EXPECT_EQ(FoundIn(result), "FS-43");
  for (const Finding& finding : result.findings) {
    EXPECT_NE(finding.seen.find("registered with another group"), std::string::npos)
        << finding.seen;
    EXPECT_NE(finding.message.find("a gather of parameters"), std::string::npos) << finding.message;
  }
}

TEST(UserBuffers, DeregisteredBeforeItsLastUse) {
  MiniRun mini = Registered(2);
  Trace& trace = mini.run.traces[0];
  const auto last =
      std::find_if(trace.events.rbegin(), trace.events.rend(), [](const Event& event) {
        return event.kind == EventKind::kCollective && event.collective == SPF_REDUCE_SCATTER;
      });
  ASSERT_NE(last, trace.events.rend());
  Event gone = Registration(*last, EventKind::kGroupDeregister, last->group);
  gone.alloc = trace.ranges[last->ranges.begin].alloc;
  trace.events.insert(std::prev(last.base()), gone);
  EXPECT_EQ(FoundIn(CheckUserBuffers(mini.run)), "FS-43");
}

TEST(UserBuffers, AGroupOfOneRankNeedsNone) {
  const MiniRun mini = Mini(1);
  const CheckResult result = CheckUserBuffers(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.judged.contains("FS-43"));
}

TEST(UserBuffers, WithoutMemoryEventsNothingIsJudged) {
  MiniRun mini = Registered(2);
  mini.run.traces[1].provides.memory = false;
  const CheckResult result = CheckUserBuffers(mini.run);
  EXPECT_TRUE(result.judged.empty());
  ASSERT_EQ(result.not_checkable.size(), 1u);
  EXPECT_EQ(result.not_checkable[0].requirement, "FS-43");
}

// ------------------------------------------------------------------ what may be kept

struct Blocks {
  TraceBuilder t{0, 2};
  int group = t.Group("dp_cp", {0, 1}), other = t.Group("dp_cp_ag", {0, 1});
  int stream = t.Stream("compute");

  int Make(int64_t bytes, const std::vector<int>& groups, int place = SPF_REGISTRABLE) {
    const int block = t.Alloc(stream, bytes, {SPF_FOR_GRAD}, place);
    for (int with : groups) t.GroupRegister(with, block);
    return block;
  }
  void Use(int block, int64_t bytes) { t.Launch(stream, SPF_K_FILL, {Writes(block, 0, bytes)}); }
  void Discard(int block, int64_t bytes) {
    t.Launch(stream, SPF_K_DISCARD, {Writes(block, 0, bytes)});
  }
  int64_t Spared() {
    const Trace trace = t.Done();
    KeptBuffers kept(trace);
    for (const Event& event : trace.events) kept.See(event);
    return kept.SparedBytes();
  }
};

TEST(KeptBuffers, WhatWasUsedAndDiscardedIsSpared) {
  Blocks b;
  const int block = b.Make(64, {b.group});
  b.Use(block, 64);
  b.Discard(block, 64);
  EXPECT_EQ(b.Spared(), 64);
}

TEST(KeptBuffers, WhatIsInUseIsNot) {
  Blocks b;
  const int block = b.Make(64, {b.group});
  b.Use(block, 64);
  b.Discard(block, 64);
  b.Use(block, 48);
  EXPECT_EQ(b.Spared(), 16);
}

TEST(KeptBuffers, WhatWasNeverUsedIsNot) {
  Blocks b;
  b.Make(64, {b.group});
  EXPECT_EQ(b.Spared(), 0);
}

TEST(KeptBuffers, WhatIsNotRegisteredIsNot) {
  for (const int place : {SPF_DEVICE, SPF_REGISTRABLE}) {  // at_rest_test.cc: other device memory
    Blocks b;
    const int block = b.Make(64, {}, place);
    b.Use(block, 64);
    b.Discard(block, 64);
    EXPECT_EQ(b.Spared(), 0);
  }
}

TEST(KeptBuffers, NoMoreOfOneSizeAndGroupsThanWereInUseAtOnce) {
  Blocks in_turn, at_once;
  for (Blocks* b : {&in_turn, &at_once}) {
    const int first = b->Make(64, {b->group}), second = b->Make(64, {b->group});
    b->Use(first, 64);
    if (b == &in_turn) b->Discard(first, 64);
    b->Use(second, 64);
    if (b == &at_once) b->Discard(first, 64);
    b->Discard(second, 64);
  }
  EXPECT_EQ(in_turn.Spared(), 64);
  EXPECT_EQ(at_once.Spared(), 128);
}

TEST(KeptBuffers, OtherSizesAndGroupsAreKeptBeside) {
  Blocks b;
  for (const auto& [bytes, groups] : std::vector<std::pair<int64_t, std::vector<int>>>{
           {64, {b.group}}, {32, {b.group}}, {64, {b.group, b.other}}}) {
    const int block = b.Make(bytes, groups);
    b.Use(block, bytes);
    b.Discard(block, bytes);
  }
  EXPECT_EQ(b.Spared(), 160);
}

TEST(KeptBuffers, WhatIsDeregisteredOrFreedIsNot) {
  Blocks b;
  const int first = b.Make(64, {b.group}), second = b.Make(32, {b.group});
  for (const auto& [block, bytes] : {std::pair{first, 64}, {second, 32}}) {
    b.Use(block, bytes);
    b.Discard(block, bytes);
    b.t.GroupDeregister(b.group, block);
  }
  b.t.Free(b.stream, second);
  EXPECT_EQ(b.Spared(), 0);
}

// Through FS-31: a block that is far larger than what a strategy keeps.
std::string FoundWithALargeBlock(bool asked, bool discarded) {
  MiniRun mini = Registered(2, [&](InstanceSpec& spec) { spec.nccl_ub = asked; });
  Trace& trace = mini.run.traces[1];
  const auto at = std::find_if(trace.events.begin(), trace.events.end(), [](const Event& event) {
    return event.kind == EventKind::kGroupRegister;
  });
  if (at == trace.events.end()) return "no block is registered";
  Event alloc = *std::prev(at), registered = *at, fill = *std::prev(at), discard = fill;
  const int32_t block = 1 << 20;
  alloc.alloc = registered.alloc = block;
  alloc.count = registered.count = 1 << 20;
  fill.kind = discard.kind = EventKind::kLaunch;
  fill.alloc = discard.alloc = -1;
  fill.id = SPF_K_FILL;
  discard.id = SPF_K_DISCARD;
  fill.ranges = discard.ranges = {uint32_t(trace.ranges.size()), uint32_t(trace.ranges.size()) + 1};
  trace.ranges.push_back(Writes(block, 0, 1 << 20));
  std::vector<Event> events{alloc, registered, fill};
  if (discarded) events.push_back(discard);
  trace.events.insert(std::next(at), events.begin(), events.end());
  const auto free = std::find_if(trace.events.begin(), trace.events.end(), [](const Event& event) {
    return event.kind == EventKind::kStreamDestroy;
  });
  Event gone = *free;
  gone.kind = EventKind::kFree;
  gone.alloc = block;
  trace.events.insert(free,
                      {Registration(gone, EventKind::kGroupDeregister, registered.group), gone});
  return FoundIn(CheckLifetime(mini.run));
}

TEST(KeptBuffers, IdleMemoryAtRestIsNotHeldAgainstARankThatWasAskedForIt) {
  EXPECT_EQ(FoundWithALargeBlock(true, true), "");
  EXPECT_EQ(FoundWithALargeBlock(true, false), "FS-31") << "what is in use at rest counts";
  EXPECT_EQ(FoundWithALargeBlock(false, true), "FS-31") << "without nccl_ub nothing is spared";
}

}  // namespace
}  // namespace shardproof
