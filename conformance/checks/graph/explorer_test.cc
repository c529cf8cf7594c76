// The verdicts of fixtures/deadlock, found again by running the programs.
#include "conformance/checks/testing/explorer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/graph/graph_checks.h"
#include "conformance/common/at.h"

namespace shardproof::graph {
namespace {

constexpr int32_t kManySlots = 1000;

const std::vector<DeadlockProgram>& Programs() {
  static const auto* programs =
      new std::vector<DeadlockProgram>(ReadDeadlockPrograms("fixtures/deadlock/programs.jsonl"));
  return *programs;
}

// Every maximal run ends alike, so a few decide; which one comes is drawn with a fixed seed.
void ExpectProfile(const char* profile, Explorer::Machine machine, bool eager) {
  std::mt19937 random(3);
  int judged = 0;
  for (const DeadlockProgram& program : Programs()) {
    const auto expected = program.profiles.find(profile);
    if (expected == program.profiles.end()) continue;
    const Explorer explorer(program);
    for (int run = 0; run < 5; ++run) {
      EXPECT_EQ(explorer.RunOnce(machine, eager, kManySlots, random), expected->second == "ok")
          << program.name;
    }
    ++judged;
  }
  EXPECT_GT(judged, 200);
}

TEST(Explorer, FreeStarts) { ExpectProfile("e0", Explorer::Machine::kFree, false); }
TEST(Explorer, StartsInIssueOrder) { ExpectProfile("e1", Explorer::Machine::kInOrder, false); }
TEST(Explorer, OneQueue) { ExpectProfile("e2", Explorer::Machine::kOneQueue, false); }
TEST(Explorer, OneAfterTheOther) { ExpectProfile("e2s", Explorer::Machine::kSerial, false); }
TEST(Explorer, EagerSendsAndRoots) { ExpectProfile("eager", Explorer::Machine::kFree, true); }

TEST(Explorer, SlotsInOrderAreTheLeastThatNeverHang) {
  std::mt19937 random(5);
  for (const DeadlockProgram& program : Programs()) {
    if (!program.has_slots_in_order) continue;
    const Explorer explorer(program);
    const int32_t least = program.slots_in_order;
    EXPECT_EQ(explorer.RunOnce(Explorer::Machine::kInOrder, false, least == 0 ? kManySlots : least,
                               random),
              least != 0)
        << program.name;
    if (least > 1) {
      EXPECT_FALSE(explorer.RunOnce(Explorer::Machine::kInOrder, false, least - 1, random))
          << program.name;
    }
  }
}

TEST(Explorer, OneSlotAndStartsInAnyOrder) {
  int judged = 0;
  for (const DeadlockProgram& program : Programs()) {
    if (program.one_slot_any_order.empty()) continue;
    const auto explored = Explorer(program).Explore(1, 200'000);
    if (!explored) continue;
    EXPECT_EQ(explored->hangs, program.one_slot_any_order == "hang") << program.name;
    ++judged;
  }
  EXPECT_EQ(judged, 184);
}

TEST(Explorer, MostKernelsInFlight) {
  int judged = 0;
  for (const DeadlockProgram& program : Programs()) {
    if (program.max_spinning.empty()) continue;
    const auto explored = Explorer(program).Explore(kManySlots, 200'000);
    if (!explored) continue;
    EXPECT_EQ(explored->spinning, program.max_spinning) << program.name;
    EXPECT_EQ(explored->resident, program.max_resident) << program.name;
    EXPECT_FALSE(explored->hangs) << program.name;
    ++judged;
  }
  EXPECT_EQ(judged, 184);
}

// Two or three ranks; collectives, messages, groups, records, waits and syncs, in orders that
// differ by rank.
class RandomProgram {
 public:
  explicit RandomProgram(std::mt19937& random) : random_(random) {}

  DeadlockProgram Draw() {
    DeadlockProgram program;
    const int32_t ranks = 2 + Pick(2);
    std::vector<int32_t> all;
    for (int32_t rank = 0; rank < ranks; ++rank) all.push_back(rank);
    program.communicators = {{"c0", all}, {"c1", all}, {"c2", {0, ranks - 1}}};
    std::vector<std::vector<std::string>> lists(all.size());
    const int32_t operations = 2 + Pick(3);
    for (int32_t i = 0; i < operations; ++i) {
      Joint(program, lists);
      for (auto& list : lists) Local(list);
    }
    for (auto& list : lists) {
      for (int swaps = list.empty() ? 0 : Pick(3); swaps > 0; --swaps) {
        const auto at = static_cast<size_t>(Pick(static_cast<int32_t>(list.size())));
        if (at + 1 < list.size() && list[at][0] != 'g' && list[at + 1][0] != 'g')
          std::swap(list[at], list[at + 1]);
      }
      if (Pick(4) == 0) Group(list);
      program.ranks.push_back({list});
    }
    return program;
  }

 private:
  int32_t Pick(int32_t n) { return static_cast<int32_t>(random_() % static_cast<uint32_t>(n)); }
  std::string Stream() { return " s" + std::to_string(Pick(3)); }

  void Joint(const DeadlockProgram& program, std::vector<std::vector<std::string>>& lists) {
    const std::string name = "c" + std::to_string(Pick(3));
    const auto& members = program.communicators.at(name);
    const int32_t kind = Pick(6);
    const int32_t root = At(members, Pick(static_cast<int32_t>(members.size())));
    if (kind == 0) {
      const int32_t to = members[0] == root ? members.back() : members[0];
      At(lists, root).push_back("send " + name + Stream() + " to=" + std::to_string(to));
      At(lists, to).push_back("recv " + name + Stream() + " from=" + std::to_string(root));
      return;
    }
    for (const int32_t rank : members) {
      auto& list = At(lists, rank);
      if (kind == 1) list.push_back("host all_reduce " + name);
      if (kind == 2)
        list.push_back("broadcast " + name + Stream() + " root=" + std::to_string(root));
      if (kind == 3) list.push_back("reduce " + name + Stream() + " root=" + std::to_string(root));
      if (kind > 3) list.push_back("all_gather " + name + Stream());
    }
  }

  void Local(std::vector<std::string>& list) {
    const std::string event = " e" + std::to_string(Pick(2));
    switch (Pick(7)) {
      case 0:
        list.push_back("kernel" + Stream());
        break;
      case 1:
        list.push_back("record" + event + Stream());
        break;
      case 2:
        list.push_back("wait" + event + Stream());
        break;
      case 3:
        list.push_back("sync" + (Pick(2) == 0 ? Stream() : event));
        break;
      default:
        break;
    }
  }

  // Two neighbours in a group, if they are no host calls.
  void Group(std::vector<std::string>& list) {
    const auto grouped = [](const std::string& text) {
      return text.starts_with("all_gather") || text.starts_with("send") ||
             text.starts_with("recv") || text.starts_with("broadcast");
    };
    for (size_t i = 0; i + 1 < list.size(); ++i) {
      if (!grouped(list[i]) || !grouped(list[i + 1])) continue;
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(i) + 2, "group_end");
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), "group_begin");
      return;
    }
  }

  std::mt19937& random_;
};

TEST(Explorer, AgreesWithTheGraphChecksOnRandomPrograms) {
  std::mt19937 random(17);
  int hangs = 0, safe = 0, matched = 0, explored_programs = 0;
  for (int round = 0; round < 4000; ++round) {
    const DeadlockProgram program = RandomProgram(random).Draw();
    const Explorer explorer(program);
    const std::vector<Trace> traces = ToTraces(program);
    const Program lowered = Lower(traces);
    std::string text;
    for (const auto& rank : program.ranks) {
      for (const std::string& operation : rank[0]) text += operation + "; ";
      text += "// ";
    }
    SCOPED_TRACE(text);
    using Machine = Explorer::Machine;
    const std::pair<Profile, Machine> profiles[] = {{Profile::kE0, Machine::kFree},
                                                    {Profile::kE1, Machine::kInOrder},
                                                    {Profile::kE2, Machine::kOneQueue},
                                                    {Profile::kE2s, Machine::kSerial}};
    for (const auto& [profile, machine] : profiles) {
      ASSERT_EQ(Safe(lowered, profile), explorer.RunOnce(machine, false, kManySlots, random))
          << static_cast<int>(profile);
    }
    if (CheckMatching(traces).findings.empty()) {  // what an operation needs depends on its kind
      ASSERT_EQ(Safe(lowered, Profile::kEager),
                explorer.RunOnce(Machine::kFree, true, kManySlots, random));
      ++matched;
    }
    const int32_t least = SlotsInOrder(lowered);
    ASSERT_EQ(explorer.RunOnce(Machine::kInOrder, false, least == 0 ? kManySlots : least, random),
              least != 0);
    if (least > 1) {
      ASSERT_FALSE(explorer.RunOnce(Machine::kInOrder, false, least - 1, random));
    }
    if (!Safe(lowered, Profile::kE0)) {
      ++hangs;
      continue;
    }
    ++safe;
    const auto explored = explorer.Explore(kManySlots, 20'000);
    if (!explored) continue;
    ++explored_programs;
    const std::vector<Slots> slots = CountSlots(lowered);
    for (size_t rank = 0; rank < slots.size(); ++rank) {
      ASSERT_GE(slots[rank].spin, explored->spinning[rank]);
      ASSERT_EQ(slots[rank].resident, explored->resident[rank]);
      ASSERT_GE(slots[rank].local, slots[rank].resident);
    }
  }
  EXPECT_GT(matched, 1000);
  EXPECT_GT(hangs, 100);
  EXPECT_GT(safe, 1000);
  EXPECT_GT(explored_programs, 1000);
}

}  // namespace
}  // namespace shardproof::graph
