// The chain of parameter gathers: whatever is called in whatever order, values are right when they
// are needed, each bucket is gathered once per step, and all ranks issue the same sequence.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "property_tests/property.h"
#include "reference/layerwise/gather_chain.h"

namespace shardproof {
namespace {

// A rank's copy of parameters that others own: which step's values it has, and what is under way.
class Model : public reference::GatherPort {
 public:
  explicit Model(int32_t buckets)
      : value_(static_cast<size_t>(buckets)), in_flight_(value_.size()), waited_(value_.size()) {}

  void Launch(int32_t p) override {
    const auto i = static_cast<size_t>(p);
    RC_ASSERT(!in_flight_[i]);
    in_flight_[i] = true;
    sequence_.push_back(p);
    most_outstanding_ = std::max(most_outstanding_, Outstanding());
  }
  void Wait(int32_t p) override {
    RC_ASSERT(in_flight_[static_cast<size_t>(p)]);
    waited_[static_cast<size_t>(p)] = true;
  }
  void Publish(int32_t p) override {
    const auto i = static_cast<size_t>(p);
    RC_ASSERT(in_flight_[i] && waited_[i]);
    in_flight_[i] = waited_[i] = false;
    value_[i] = step_;
  }
  void Step() {
    RC_ASSERT(Outstanding() == 0);
    ++step_;
    sequence_.clear();
  }
  bool Fresh(int32_t p) const { return value_[static_cast<size_t>(p)] == step_; }
  int32_t Outstanding() const {
    int32_t count = 0;
    for (bool in_flight : in_flight_) count += in_flight ? 1 : 0;
    return count;
  }
  const std::vector<int32_t>& sequence() const { return sequence_; }
  int32_t most_outstanding() const { return most_outstanding_; }

 private:
  std::vector<int64_t> value_;
  std::vector<bool> in_flight_, waited_;
  std::vector<int32_t> sequence_;  // of launches in this step
  int64_t step_ = 0;
  int32_t most_outstanding_ = 0;
};

// A step of one rank: forwards in any order with repetitions and omissions, then evaluation, saves.
void AnyForward(reference::GatherChain& chain, Model& model, int32_t buckets) {
  const int32_t calls = *rc::gen::inRange(0, 12);
  for (int32_t i = 0; i < calls; ++i) {
    const int32_t before = chain.published();
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
        chain.PublishAll();
        for (int32_t p = 0; p < buckets; ++p) RC_ASSERT(model.Fresh(p));
        break;
      case 1:
        chain.FreeBuffers();
        RC_ASSERT(model.Outstanding() == 0);
        break;
      default: {
        const int32_t p = *rc::gen::inRange(0, buckets);
        chain.Need(p);
        RC_ASSERT(model.Fresh(p));
      }
    }
    RC_ASSERT(chain.published() >= before);
    RC_ASSERT(chain.launched() - chain.published() == model.Outstanding());
  }
}

TEST(GatherChainPropertyTest, EveryOrderOfCallsGivesFreshValuesAndOneSequence) {
  PropertyOptions options;
  options.evaluations = 500;
  EXPECT_TRUE(CheckProperty(
      "every order of calls gives fresh values and one sequence",
      [] {
        const int32_t buckets = *rc::gen::inRange(1, 7);
        std::vector<int32_t> all;
        for (int32_t p = 0; p < buckets; ++p) all.push_back(p);
        Model model(buckets);
        reference::GatherChain chain(buckets, model);
        chain.MarkPublished();  // as after create
        const int32_t steps = *rc::gen::inRange(1, 5);
        for (int32_t step = 0; step < steps; ++step) {
          AnyForward(chain, model, buckets);
          chain.PublishAll();
          RC_ASSERT(model.sequence() == (step == 0 ? std::vector<int32_t>{} : all));
          chain.Rearm();
          model.Step();
        }
        RC_ASSERT(model.most_outstanding() <= 2);
      },
      options));
}

// Records calls as text: L1 W0 P0.
class Recorder : public reference::GatherPort {
 public:
  void Launch(int32_t p) override { text += "L" + std::to_string(p) + " "; }
  void Wait(int32_t p) override { text += "W" + std::to_string(p) + " "; }
  void Publish(int32_t p) override { text += "P" + std::to_string(p) + " "; }
  std::string text;
};

TEST(GatherChainTest, TheNextStartsBeforeValuesAreCopied) {
  Recorder recorder;
  reference::GatherChain chain(3, recorder);
  chain.Need(0);
  EXPECT_EQ(recorder.text, "L0 W0 L1 P0 ");
  chain.Need(0);
  chain.Need(2);
  EXPECT_EQ(recorder.text, "L0 W0 L1 P0 W1 L2 P1 W2 P2 ");
}

TEST(GatherChainTest, FreeingStartsNothingAndTheRestComesLater) {
  Recorder recorder;
  reference::GatherChain chain(3, recorder);
  chain.FreeBuffers();
  EXPECT_EQ(recorder.text, "");
  chain.Need(0);
  chain.FreeBuffers();
  EXPECT_EQ(recorder.text, "L0 W0 L1 P0 W1 P1 ");
  chain.PublishAll();
  EXPECT_EQ(recorder.text, "L0 W0 L1 P0 W1 P1 L2 W2 P2 ");
}

TEST(GatherChainTest, AStepWhileSomethingIsStaleIsAnError) {
  Recorder recorder;
  reference::GatherChain chain(2, recorder);
  EXPECT_THROW(chain.Rearm(), std::logic_error);
  chain.Need(0);
  EXPECT_THROW(chain.Rearm(), std::logic_error);
  EXPECT_THROW(chain.MarkPublished(), std::logic_error) << "bucket 1 travels";
  chain.PublishAll();
  EXPECT_NO_THROW(chain.Rearm());
  EXPECT_THROW(chain.Need(2), std::out_of_range);
  EXPECT_THROW(chain.Need(-1), std::out_of_range);
}

TEST(GatherChainTest, AChainWithoutBucketsDoesNothing) {
  Recorder recorder;
  reference::GatherChain chain(0, recorder);
  chain.PublishAll();
  chain.Rearm();
  chain.FreeBuffers();
  EXPECT_EQ(recorder.text, "");
}

}  // namespace
}  // namespace shardproof
