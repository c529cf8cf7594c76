#include "conformance/checks/graph/registrations.h"

#include "conformance/checks/graph/registering_rank.h"

namespace shardproof {
namespace {

using Rank = RegisteringRank;

TEST(Registrations, NobodyRegistersSoNothingIsJudged) {
  const CheckResult result = Check([](Rank& r) { r.AllReduce(r.plain); });
  Expect(result, "");
  for (const char* id : {"GE-15", "GE-16", "GE-17"}) EXPECT_FALSE(result.judged.contains(id)) << id;
  EXPECT_TRUE(result.not_checkable.empty());
  EXPECT_TRUE(result.notes.empty());
}

TEST(Registrations, OneRegistrationFewerIsFound) {
  const CheckResult result = Check([](Rank& r) {
    r.trace.GroupRegister(r.dp, r.small);
    if (r.rank != 2) r.trace.GroupRegister(r.dp, r.large);
    r.AllReduce(r.plain);
  });
  Expect(result, "GE-15", 0, {"#1", "rank 2 only 1"});
  ASSERT_EQ(result.not_checkable.size(), 1u);
  EXPECT_EQ(result.not_checkable[0].requirement, "GE-16");
}

TEST(Registrations, ADifferentSizeIsFound) {
  Expect(Check([](Rank& r) {
           r.trace.GroupRegister(r.dp, r.small);
           r.trace.GroupRegister(r.dp, r.rank == 1 ? r.trace.Alloc(r.stream, 128) : r.large);
         }),
         "GE-15", 1, {"#1", "rank 1 registers 128 bytes, ranks 0 and 2 256 bytes"});
}

TEST(Registrations, TheSameSizesInAnotherOrderAreFound) {
  Expect(Check([](Rank& r) {
           r.trace.GroupRegister(r.dp, r.rank == 2 ? r.large : r.small);
           r.trace.GroupRegister(r.dp, r.rank == 2 ? r.small : r.large);
         }),
         "GE-15", 2, {"#0", "rank 2 registers 256 bytes, ranks 0 and 1 64 bytes"});
}

TEST(Registrations, DifferentSizesLeaveDeadlockAndRacesCheckable) {
  const CheckResult result = CheckGraph(TracesOf([](Rank& r) {
    r.trace.GroupRegister(r.dp, r.rank == 2 ? r.large : r.small);
    r.AllReduce(r.plain);
  }));
  EXPECT_EQ(result.findings.size(), 1u);
  EXPECT_TRUE(result.judged.contains("GE-03"));
  EXPECT_TRUE(result.judged.contains("GE-05"));
}

// One rank's calls alone: what they are, and what is said.
struct Misuse {
  const char* name;
  void (*calls)(Rank&);
  const char* seen;
};

const Misuse kMisuses[] = {
    {"never allocated", [](Rank& r) { r.trace.GroupRegister(r.dp, 77), r.trace.Last().count = 64; },
     "block 77, which was never allocated"},
    {"freed before",
     [](Rank& r) { r.trace.Free(r.stream, r.small), r.trace.GroupRegister(r.dp, r.small); },
     "block 0, which was freed before"},
    {"a part of it",
     [](Rank& r) { r.trace.GroupRegister(r.dp, r.large), r.trace.Last().count = 64; },
     "expected the whole of block 1, 256 bytes, seen 64 bytes"},
    {"registered twice",
     [](Rank& r) { r.trace.GroupRegister(r.dp, r.small), r.trace.GroupRegister(r.dp, r.small); },
     "a second one before the first was ended"},
    {"deregistered twice",
     [](Rank& r) {
       r.trace.GroupRegister(r.dp, r.small);
       r.trace.GroupDeregister(r.dp, r.small), r.trace.GroupDeregister(r.dp, r.small);
     },
     "block 0, which is not"},
    {"deregistered from another group",
     [](Rank& r) {
       r.trace.GroupRegister(r.dp, r.small), r.trace.GroupDeregister(r.twin, r.small);
     },
     "expected a block that is registered with dp_cp_ag"},
    {"deregistered and unknown", [](Rank& r) { r.trace.GroupDeregister(r.dp, 77); },
     "block 77, which is not"},
    {"freed first",
     [](Rank& r) { r.trace.GroupRegister(r.dp, r.small), r.trace.Free(r.stream, r.small); },
     "expected block 0 deregistered from dp_cp before it is freed"},
    {"destroyed first",
     [](Rank& r) { r.trace.GroupRegister(r.twin, r.small), r.trace.GroupDestroy(r.twin); },
     "expected block 0 deregistered from dp_cp_ag before the group is destroyed"},
};

TEST(Registrations, CallsThatAreWrongByThemselvesAreFound) {
  for (const Misuse& misuse : kMisuses) {
    SCOPED_TRACE(misuse.name);
    const CheckResult result = Check(misuse.calls);
    ASSERT_EQ(result.findings.size(), static_cast<size_t>(kWorld)) << "one of each rank";
    for (const Finding& finding : result.findings) {
      EXPECT_EQ(finding.requirement, "GE-17");
      EXPECT_NE(finding.message.find(misuse.seen), std::string::npos) << finding.message;
    }
  }
}

TEST(Registrations, AGroupThatIsNotThereIsNotCheckable) {
  for (const bool registers : {true, false}) {
    const CheckResult result = Check([registers](Rank& r) {
      if (registers) r.trace.GroupRegister(r.dp, r.small);
      if (!registers) r.trace.GroupDeregister(r.dp, r.small);
      r.trace.Last().group = 9;
    });
    EXPECT_TRUE(result.judged.empty());
    ASSERT_FALSE(result.not_checkable.empty());
    EXPECT_NE(result.not_checkable[0].why.find("no such group: 9"), std::string::npos)
        << result.not_checkable[0].why;
  }
}

}  // namespace
}  // namespace shardproof
