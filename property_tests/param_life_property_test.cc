// A state machine of sharded parameters: absent, in flight, ready. Each step is legal or not in its
// state; the race check must complain about a history exactly if it has an illegal step, and agree
// with a check that tries every pair.
#include <gtest/gtest.h>
#include <rapidcheck/state.h>

#include <array>

#include "conformance/checks/graph/races.h"
#include "conformance/trace/trace_builder.h"
#include "property_tests/property.h"

namespace shardproof {
namespace {

constexpr size_t kUnits = 3;
constexpr int64_t kShardBytes = 32;

enum class State { kAbsent, kInFlight, kReady };

struct Unit {
  State state = State::kAbsent;
  bool unseen_reads = false;  // compute has read it since the gather stream last waited for compute
};

struct Life {
  std::array<Unit, kUnits> units;
  int illegal = 0;      // steps
  bool strict = false;  // no illegal steps, please

  void GathersWaitForCompute() {
    for (Unit& unit : units) unit.unseen_reads = false;
  }
};

// What the steps do to a rank.
class Rank {
 public:
  Rank() : trace_(0, 1) {
    dp_ = trace_.Group("dp_cp", {0});
    compute_ = trace_.Stream("compute");
    gather_ = trace_.Stream("gather");
    for (size_t unit = 0; unit < kUnits; ++unit) shard_[unit] = trace_.Alloc(compute_, kShardBytes);
    Order(compute_, gather_);
  }
  // What `after` does from now on comes after what `before` was given so far.
  void Order(int before, int after) {
    const int event = trace_.EventCreate();
    trace_.Record(event, before);
    trace_.Wait(event, after);
  }
  void Alloc(size_t unit) { full_[unit] = trace_.Alloc(compute_, kShardBytes); }
  void Gather(size_t unit) {
    trace_.Collective(SPF_ALL_GATHER, dp_, gather_, kShardBytes / 4,
                      {Reads(shard_[unit], 0, kShardBytes), Writes(full_[unit], 0, kShardBytes)});
  }
  void Read(size_t unit) {
    trace_.Launch(compute_, SPF_K_ADAMW, {Reads(full_[unit], 0, kShardBytes)});
  }
  void Install(size_t unit) {
    trace_.Launch(compute_, SPF_K_ADAMW, {Updates(shard_[unit], 0, kShardBytes)});
  }
  void Free(size_t unit, int stream) { trace_.Free(stream, full_[unit]); }
  int compute() const { return compute_; }
  int gather() const { return gather_; }
  Trace Done() { return trace_.Done(); }

 private:
  TraceBuilder trace_;
  int dp_ = 0, compute_ = 0, gather_ = 0;
  std::array<int, kUnits> shard_{}, full_{};
};

struct Step : rc::state::Command<Life, Rank> {
  Step(const char* what, State needed) : name(what), needs(needed) {}
  size_t unit = *rc::gen::inRange<size_t>(0, kUnits);
  const char* name;
  State needs;  // kAbsent: only then; else: whenever it is not absent
  virtual bool Possible(const Life& life) const {
    return (life.units[unit].state == State::kAbsent) == (needs == State::kAbsent);
  }
  void checkPreconditions(const Life& life) const override {
    RC_PRE(Possible(life));
    RC_PRE(!life.strict || nextState(life).illegal == 0);
  }
  void show(std::ostream& out) const override { out << name << "(" << unit << ")"; }
};

// Launches a gather; legal if the gather stream has waited for the compute stream, which made room.
struct Gather : Step {
  Gather() : Step("gather", State::kAbsent) {}
  void apply(Life& life) const override {
    life.GathersWaitForCompute();
    life.units[unit] = {State::kInFlight, false};
  }
  void run(const Life&, Rank& rank) const override {
    rank.Alloc(unit);
    rank.Order(rank.compute(), rank.gather());
    rank.Gather(unit);
  }
};

struct GatherTooEarly : Step {
  GatherTooEarly() : Step("gather too early", State::kAbsent) {}
  void apply(Life& life) const override {
    life.units[unit] = {State::kInFlight, false};
    ++life.illegal;
  }
  void run(const Life&, Rank& rank) const override {
    rank.Alloc(unit);
    rank.Gather(unit);
  }
};

// Waits for all gathers so far.
struct WaitForGathers : Step {
  WaitForGathers() : Step("wait", State::kInFlight) {}
  void apply(Life& life) const override {
    for (Unit& each : life.units) {
      if (each.state == State::kInFlight) each.state = State::kReady;
    }
  }
  void run(const Life&, Rank& rank) const override { rank.Order(rank.gather(), rank.compute()); }
};

struct Read : Step {
  Read() : Step("read", State::kReady) {}
  void apply(Life& life) const override {
    if (life.units[unit].state == State::kInFlight) ++life.illegal;
    life.units[unit].unseen_reads = true;
  }
  void run(const Life&, Rank& rank) const override { rank.Read(unit); }
};

// The optimizer writes the shard; legal unless a gather still reads it.
struct Install : Step {
  Install() : Step("install", State::kReady) {}
  bool Possible(const Life&) const override { return true; }
  void apply(Life& life) const override {
    if (life.units[unit].state == State::kInFlight) ++life.illegal;
  }
  void run(const Life&, Rank& rank) const override { rank.Install(unit); }
};

// Frees in the order of compute; legal once compute has waited.
struct Release : Step {
  Release() : Step("release", State::kReady) {}
  void apply(Life& life) const override {
    if (life.units[unit].state == State::kInFlight) ++life.illegal;
    life.units[unit] = {};
  }
  void run(const Life&, Rank& rank) const override { rank.Free(unit, rank.compute()); }
};

// Frees in the order of gathers; legal if that stream has waited for the last read. Shards of
// gathers that nobody waited for are still being read: the unit is absent only when somebody has.
struct ReleaseOnGather : Step {
  ReleaseOnGather() : Step("release on gather", State::kReady) {}
  bool Possible(const Life& life) const override { return life.units[unit].state == State::kReady; }
  void apply(Life& life) const override {
    if (life.units[unit].unseen_reads) ++life.illegal;
    life.units[unit] = {};
  }
  void run(const Life&, Rank& rank) const override { rank.Free(unit, rank.gather()); }
};

TEST(ParamLifePropertyTest, RacesAreIllegalSteps) {
  PropertyOptions options;
  options.evaluations = 300;
  int legal = 0, illegal = 0;
  EXPECT_TRUE(CheckProperty(
      "races are illegal steps of a parameter's life",
      [&] {
        Life life;
        life.strict = *rc::gen::arbitrary<bool>();
        const auto steps = *rc::gen::resize(
            30, rc::state::gen::commands(
                    life, rc::state::gen::execOneOfWithArgs<Gather, Gather, Gather, WaitForGathers,
                                                            WaitForGathers, Read, Install, Release,
                                                            ReleaseOnGather, GatherTooEarly>()));
        Rank rank;
        for (const auto& step : steps) {
          step->run(life, rank);
          step->apply(life);
        }
        const std::vector<Trace> traces{rank.Done()};
        const graph::Program program = graph::Lower(traces);
        graph::MustOrder order(program);
        const size_t found = graph::FindRaces(program, order, {}).races.size();
        const size_t all = graph::FindAllRaces(program, order).size();
        ++(life.illegal == 0 ? legal : illegal);
        RC_LOG() << found << " races found of " << all << ", illegal steps: " << life.illegal
                 << "\n";
        RC_ASSERT((found > 0) == (life.illegal > 0));
        RC_ASSERT((all > 0) == (life.illegal > 0));
        RC_ASSERT(found <= all);
      },
      options));
  EXPECT_GT(legal, 100);
  EXPECT_GT(illegal, 100);
}

}  // namespace
}  // namespace shardproof
