// Is a history of ranges the same as one history for each byte, and does it stay small?
#include "conformance/checks/graph/access_history.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace shardproof::graph {
namespace {

constexpr int64_t kBytes = 40;
constexpr size_t kComponents = 3;
using Clock = std::array<uint32_t, kComponents>;
using Pairs = std::set<std::pair<uint32_t, uint32_t>>;  // (earlier, later) of entries

Access Of(uint32_t entry, uint32_t component, uint8_t access) {
  return {entry, entry + 1, component, access};
}

// Entries in strides, or whole, on random components; a clock knows all of its own component and
// what it has happened to wait for.
class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {}

  Pairs Run(bool each_byte) {
    random_.seed(random_());
    Pairs found;
    AccessHistory whole;
    std::array<AccessHistory, kBytes> bytes;
    std::array<Clock, kComponents> clocks{};
    for (uint32_t entry = 0; entry < 60; ++entry) {
      const auto component = static_cast<uint32_t>(random_() % kComponents);
      Clock& clock = clocks[component];
      if (random_() % 3 == 0) {
        const Clock& other = clocks[random_() % kComponents];
        for (size_t c = 0; c < kComponents; ++c) clock[c] = std::max(clock[c], other[c]);
      }
      const Access mine = Of(entry, component, random_() % 2 == 0 ? kRead : kWrite);
      const auto stride = static_cast<int64_t>(1 + random_() % 6);
      const auto length = static_cast<int64_t>(1 + random_() % static_cast<uint64_t>(stride));
      for (auto at = static_cast<int64_t>(random_() % 8); at < kBytes; at += stride) {
        const int64_t end = std::min(kBytes, at + length);
        const auto conflict = [&](const Access& other, int64_t, int64_t) {
          found.insert({other.entry, entry});
          return false;
        };
        if (!each_byte) whole.Visit(at, end, mine, clock.data(), conflict);
        for (int64_t byte = at; each_byte && byte < end; ++byte)
          bytes[static_cast<size_t>(byte)].Visit(byte, byte + 1, mine, clock.data(), conflict);
      }
      clock[component] = entry + 1;
    }
    return found;
  }

 private:
  std::mt19937 random_;
};

TEST(AccessHistory, OfRangesFindsWhatOneOfEachByteFinds) {
  size_t pairs = 0;
  for (uint32_t seed = 0; seed < 800; ++seed) {
    const Pairs expected = Program(seed).Run(true);
    EXPECT_EQ(Program(seed).Run(false), expected) << seed;
    pairs += expected.size();
  }
  EXPECT_GT(pairs, 30'000u);
}

TEST(AccessHistory, StridesBecomeOneAgain) {
  const Clock clock{100, 100, 100};
  const auto never = [](const Access&, int64_t, int64_t) { return true; };
  for (const uint8_t last : {kRead, kWrite}) {
    AccessHistory history;
    history.Visit(0, 4000, Of(0, 0, kWrite), clock.data(), never);
    for (int64_t at = 0; at < 4000; at += 4)
      history.Visit(at, at + 2, Of(1, 0, kRead), clock.data(), never);
    EXPECT_GE(history.pieces(), 2000u);
    history.Visit(0, 4000, Of(2, 0, last), clock.data(), never);
    EXPECT_EQ(history.pieces(), 1u) << int{last};
  }
}

// Each slice was put in front of all others, which were moved: 80,000 took 6.5 s, these would take
// minutes.
TEST(AccessHistory, SlicesInReverseOrderAreNotMoved) {
  const Clock clock{};
  AccessHistory history;
  size_t conflicts = 0;
  for (uint32_t i = 0; i < 300'000; ++i) {
    const int64_t begin = 4 * (300'000 - int64_t{i});
    history.Visit(begin, begin + 5, Of(i, i % 2, kWrite), clock.data(),
                  [&](const Access&, int64_t, int64_t) { return ++conflicts == 0; });
  }
  EXPECT_EQ(conflicts, 299'999u);  // neighbours share a byte
}

// Many requests read one block before the first of them is over.
TEST(AccessHistory, OpenReadsOfOneBlockAreNotComparedWithEachOther) {
  constexpr uint32_t kReads = 10000;
  AccessHistory history;
  Clock clock{};
  size_t conflicts = 0;
  const auto conflict = [&](const Access&, int64_t, int64_t) {
    ++conflicts;
    return false;
  };
  history.Visit(0, kBytes, {0, 1, 0, kWrite}, clock.data(), conflict);
  clock[0] = 1;
  for (uint32_t entry = 1; entry <= kReads; ++entry)
    history.Visit(0, kBytes, {entry, kReads + entry, 0, kRead}, clock.data(), conflict);
  EXPECT_EQ(conflicts, 0U);
  EXPECT_LE(history.compared(), 12 * kReads);
  history.Visit(0, kBytes, {kReads + 1, kReads + 2, 1, kWrite}, clock.data(), conflict);
  EXPECT_EQ(conflicts, kReads);
}

// Many host threads read one block.
TEST(AccessHistory, ReadsOfManyComponentsAreNotComparedWithEachOther) {
  constexpr uint32_t kReads = 10000;
  AccessHistory history;
  const std::vector<uint32_t> clock(kReads + 1);
  size_t conflicts = 0;
  const auto conflict = [&](const Access&, int64_t, int64_t) { return ++conflicts == 0; };
  for (uint32_t entry = 0; entry < kReads; ++entry)
    history.Visit(0, kBytes, {entry, entry + 1, entry, kRead}, clock.data(), conflict);
  EXPECT_EQ(conflicts, 0U);
  EXPECT_LE(history.compared(), 12 * kReads);
  history.Visit(0, kBytes, {kReads, kReads + 1, kReads, kWrite}, clock.data(), conflict);
  EXPECT_EQ(conflicts, kReads);
}

// As host threads do that read one block again and again.
TEST(AccessHistory, ComponentsThatReadAgainGoOverNoReadsOfOthers) {
  constexpr uint32_t kReads = 20000, kReaders = 4000;
  AccessHistory history;
  std::vector<uint32_t> clock(kReaders + 1);
  std::vector<uint32_t> told;
  const auto conflict = [&](const Access& other, int64_t, int64_t) {
    told.push_back(other.entry);
    return false;
  };
  for (uint32_t entry = 0; entry < kReads; ++entry) {
    const uint32_t reader = entry * 7 % kReaders;  // a number that has no factor in common
    history.Visit(0, kBytes, Of(entry, reader, kRead), clock, conflict);
    clock[reader] = entry + 1;  // nobody else asks for it
  }
  EXPECT_EQ(told.size(), 0U);
  EXPECT_LE(history.compared(), 12 * kReads);
  history.Visit(0, kBytes, Of(kReads, kReaders, kWrite), std::vector<uint32_t>(kReaders + 1),
                conflict);
  std::vector<uint32_t> last(kReaders);
  std::iota(last.begin(), last.end(), kReads - kReaders);
  EXPECT_EQ(told, last);
}

// Neighbours that were one share their old reads, and each forgets its own.
TEST(AccessHistory, APartThatIsReadAgainForgetsNothingOfTheRest) {
  constexpr uint32_t kReaders = 100;
  AccessHistory history;
  std::vector<uint32_t> clock(kReaders + 1);
  std::map<int64_t, std::vector<uint32_t>> told;
  const auto conflict = [&](const Access& other, int64_t begin, int64_t) {
    told[begin].push_back(other.entry);
    return false;
  };
  for (uint32_t entry = 0; entry < kReaders; ++entry)
    history.Visit(0, 40, Of(entry, entry, kRead), clock, conflict);
  clock[5] = 6;
  history.Visit(0, 20, Of(kReaders, 5, kRead), clock, conflict);
  clock[5] = 0;
  history.Visit(0, 40, Of(kReaders + 1, kReaders, kWrite), clock, conflict);
  std::vector<uint32_t> rest(kReaders);
  std::iota(rest.begin(), rest.end(), 0U);
  EXPECT_EQ(told[20], rest);
  rest.erase(rest.begin() + 5);
  rest.push_back(kReaders);
  EXPECT_EQ(told[0], rest);
}

// What each byte keeps, by going over all of it at each access.
class EachByte {
 public:
  // The entries that are told, by byte.
  using Told = std::array<std::vector<uint32_t>, kBytes>;
  static bool Ordered(const Access& other) { return other.entry % 5 == 0; }

  Told Visit(int64_t begin, int64_t end, const Access& mine, const std::vector<uint32_t>& clock) {
    Told told;
    for (auto byte = static_cast<size_t>(begin); byte < static_cast<size_t>(end); ++byte) {
      std::erase_if(kept_[byte], [&](const Access& other) {
        bool ordered = clock[other.component] >= other.time;
        if (!ordered && (mine.writes() || other.writes())) {
          told[byte].push_back(other.entry);
          ordered = Ordered(other);
        }
        return (ordered || (mine.writes() && mine.time == kNeverOver)) &&
               (mine.writes() || (!other.writes() && other.component == mine.component));
      });
      kept_[byte].push_back(mine);
    }
    return told;
  }

 private:
  std::array<std::vector<Access>, kBytes> kept_;
};

// Few components or many, with requests: what is kept and in which order it is told.
TEST(AccessHistory, KeepsWhatGoingOverAllKeeps) {
  std::mt19937 random(1);
  size_t told = 0;
  for (int run = 0; run < 200; ++run) {
    AccessHistory history;
    EachByte bytes;
    const uint32_t components = run % 2 == 0 ? 3 : 30;
    std::vector<uint32_t> clock(components);
    for (uint32_t entry = 0; entry < 80; ++entry) {
      Access mine = Of(entry, static_cast<uint32_t>(random() % components),
                       random() % 16 == 0 ? kWrite : kRead);
      const bool never = random() % 8 == 0;
      mine.time = never ? kNeverOver : entry + 1 + static_cast<uint32_t>(random() % 12);
      if (random() % 2 == 0) clock[random() % components] = entry;
      const bool part = random() % 4 == 0;
      const int64_t begin = part ? static_cast<int64_t>(random() % 3) * 10 : 0;
      const int64_t end = part ? begin + 10 : kBytes;
      EachByte::Told seen;
      history.Visit(begin, end, mine, clock, [&](const Access& other, int64_t from, int64_t to) {
        for (int64_t byte = from; byte < to; ++byte)
          seen[static_cast<size_t>(byte)].push_back(other.entry);
        return EachByte::Ordered(other);
      });
      ASSERT_EQ(seen, bytes.Visit(begin, end, mine, clock)) << "run " << run << ", entry " << entry;
      told += seen[0].size();
    }
  }
  EXPECT_GT(told, 1000U);
}

}  // namespace
}  // namespace shardproof::graph
