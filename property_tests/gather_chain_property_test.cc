// The chain of parameter gathers as a state machine: whatever is called in whatever order, values
// are fresh when they are needed, each bucket is gathered once per step, all ranks issue the same
// sequence, and nothing writes into gradients once there are some.
//
//   published   buckets from the front whose values are those of the last step
//   launched    those, and at most one more that travels
//
// Legal after any call: launched is published or one more. Every step has a new chain, and so has
// what follows a load.
#include <gtest/gtest.h>
#include <rapidcheck/state.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "property_tests/gather_chain_device.h"
#include "property_tests/property.h"

namespace shardproof {
namespace {

// What calls should lead to.
struct Life {
  int32_t buckets = 0, published = 0, launched = 0;
};
struct Rank {
  explicit Rank(const std::vector<bool>& travels) : device(travels) {
    Begin(false);  // as after create: every rank has all initial values
  }
  void Begin(bool stale) { chain.emplace(device.size(), device, stale); }
  GatherDevice device;
  std::optional<reference::GatherChain> chain;  // of this step
};

struct Call : rc::state::Command<Life, Rank> {
  explicit Call(const char* called) : name(called) {}
  void show(std::ostream& out) const override { out << name; }
  void run(const Life& before, Rank& rank) const override {
    Do(rank);
    Life after = before;
    apply(after);
    RC_ASSERT(rank.device.Outstanding() == after.launched - after.published);
    for (int32_t p = 0; p < after.buckets; ++p)
      RC_ASSERT(rank.device.Fresh(p) == (p < after.published));
  }
  virtual void Do(Rank& rank) const = 0;
  const char* name;
};

// A module's parameters are needed, in any order, any number of times; the next bucket follows.
struct Need : Call {
  explicit Need(const Life& life) : Call("need ") {
    RC_PRE(life.buckets > 0);
    position = *rc::gen::inRange(0, life.buckets);
  }
  void show(std::ostream& out) const override { out << name << position; }
  void apply(Life& life) const override {
    if (position < life.published) return;
    life.published = position + 1;
    life.launched = std::min(life.published + 1, life.buckets);
  }
  void Do(Rank& rank) const override {
    rank.chain->Need(position);
    const int64_t calls = rank.device.calls();
    rank.chain->Need(position);
    RC_ASSERT(rank.device.calls() == calls);
  }
  int32_t position = 0;
};

// The end of any forward: an evaluation, say, in which modules may have needed nothing.
struct PublishAll : Call {
  PublishAll() : Call("publish all") {}
  void apply(Life& life) const override { life.published = life.launched = life.buckets; }
  void Do(Rank& rank) const override { rank.chain->PublishAll(); }
};

// What is left of a training step once modules have needed what they did.
struct Train : Call {
  Train() : Call("train") {}
  void apply(Life& life) const override { life.published = life.launched = 0; }
  void Do(Rank& rank) const override {
    rank.chain->PublishAll();
    rank.device.Backward();
    rank.chain->PublishAll();
    rank.device.Update(false);
    rank.Begin(true);
  }
};

// Owners load values, once all of the last step have come. Everywhere: all ranks load all.
struct Load : Call {
  Load() : Call("load"), everywhere(*rc::gen::arbitrary<bool>()) {}
  void apply(Life& life) const override {
    life.published = life.launched = everywhere ? life.buckets : 0;
  }
  void Do(Rank& rank) const override {
    rank.chain->PublishAll();
    rank.device.Update(everywhere);
    rank.Begin(!everywhere);
  }
  bool everywhere;
};

// What is refused changes nothing.
struct NeedOutside : Call {
  NeedOutside() : Call("need what there is not") {}
  void apply(Life&) const override {}
  void Do(Rank& rank) const override {
    const int64_t calls = rank.device.calls();
    RC_ASSERT_THROWS_AS(rank.chain->Need(-1), std::out_of_range);
    RC_ASSERT_THROWS_AS(rank.chain->Need(rank.device.size()), std::out_of_range);
    RC_ASSERT(rank.device.calls() == calls);
  }
};

std::vector<bool> AnyBuckets() {
  const auto travels = rc::gen::map(rc::gen::inRange(0, 4), [](int n) { return n != 0; });
  return *rc::gen::resize(7, rc::gen::container<std::vector<bool>>(travels));
}

Positions Travelling(const std::vector<bool>& travels) {
  Positions positions;
  for (size_t p = 0; p < travels.size(); ++p) {
    if (travels[p]) positions.push_back(static_cast<int32_t>(p));
  }
  return positions;
}

TEST(GatherChainPropertyTest, AnyOrderOfCallsKeepsToTheStateMachine) {
  PropertyOptions options;
  options.evaluations = 1000;
  int refused = 0;
  EXPECT_TRUE(CheckProperty(
      "any order of calls keeps to the chain's state machine",
      [&] {
        const std::vector<bool> travels = AnyBuckets();
        const auto buckets = static_cast<int32_t>(travels.size());
        const Life life{buckets, buckets, buckets};
        const auto calls = *rc::gen::resize(
            30, rc::state::gen::commands(
                    life, rc::state::gen::execOneOfWithArgs<Need, Need, Need, Need, PublishAll,
                                                            Train, Train, Load, NeedOutside>()));
        Rank rank(travels);
        rc::state::runAll(calls, life, rank);
        for (const auto& call : calls)
          refused += dynamic_cast<const NeedOutside*>(call.get()) != nullptr ? 1 : 0;
        RC_ASSERT(rank.device.most_outstanding() <= 2);
        rank.chain->PublishAll();
        RC_ASSERT(rank.device.AllFresh());
        RC_ASSERT(rank.device.Outstanding() == 0);
      },
      options));
  EXPECT_GT(refused, 100);
}

bool BeginsWith(const Positions& longer, const Positions& shorter) {
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

// Ranks share entry calls, not what their programs need in which order.
TEST(GatherChainPropertyTest, RanksWithOtherProgramsIssueOneSequence) {
  PropertyOptions options;
  options.evaluations = 500;
  EXPECT_TRUE(CheckProperty(
      "ranks with other programs issue one sequence",
      [] {
        const std::vector<bool> travels = AnyBuckets();
        const auto buckets = static_cast<int32_t>(travels.size());
        RC_PRE(buckets > 0);
        std::vector<std::unique_ptr<Rank>> ranks;
        for (int i = 0; i < 3; ++i) ranks.push_back(std::make_unique<Rank>(travels));
        const int32_t steps = *rc::gen::inRange(1, 5);
        for (int32_t step = 0; step < steps; ++step) {
          for (const auto& rank : ranks) Train().Do(*rank);
          for (const auto& rank : ranks) {
            for (int32_t position : *rc::gen::container<Positions>(rc::gen::inRange(0, buckets))) {
              rank->chain->Need(position);
              RC_ASSERT(rank->device.Fresh(position));
            }
            const Positions &mine = rank->device.sequence(), &first = ranks[0]->device.sequence();
            RC_ASSERT(BeginsWith(mine, first) || BeginsWith(first, mine));
          }
          for (const auto& rank : ranks) {
            rank->chain->PublishAll();
            RC_ASSERT(rank->device.AllFresh());
            RC_ASSERT(rank->device.sequence() == Travelling(travels));
          }
        }
      },
      options));
}

}  // namespace
}  // namespace shardproof
