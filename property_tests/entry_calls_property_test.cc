// A state machine of an engine's life: train, evaluate, save, load, destroy and create again, in
// any order that makes sense. Whatever the order, results are those of the oracle.
#include <gtest/gtest.h>
#include <rapidcheck/state.h>

#include "property_tests/property.h"
#include "property_tests/sim_judge.h"

namespace shardproof {
namespace {

struct Life {
  bool saved = false;  // there is a folder to load
};
using Script = std::string;

struct EntryCall : rc::state::Command<Life, Script> {
  explicit EntryCall(char which) : letter(which) {}
  void run(const Life&, Script& script) const override { script += letter; }
  void show(std::ostream& out) const override { out << letter; }
  char letter;
};
struct Train : EntryCall {
  Train() : EntryCall('t') {}
};
struct Eval : EntryCall {
  Eval() : EntryCall('e') {}
};
struct Save : EntryCall {
  Save() : EntryCall('s') {}
  void apply(Life& life) const override { life.saved = true; }
};
struct Load : EntryCall {
  Load() : EntryCall('l') {}
  void checkPreconditions(const Life& life) const override { RC_PRE(life.saved); }
};
struct Again : EntryCall {
  Again() : EntryCall('r') {}
};

TEST(EntryCallsPropertyTest, AnyOrderOfCallsConforms) {
  SimJudge judge;
  PropertyOptions options;
  options.evaluations = 40;
  EXPECT_TRUE(CheckProperty(
      "any order of entry calls conforms",
      [&] {
        const std::string base = *rc::gen::element<std::string>(
            "w2.ddp", "w3.zero1.adamw", "w4.zero2.n2.k2", "w4.zero3.twin.adamw",
            "w4.zero3.n2.hfsdp.adamw", "w4.zero3.ep2.experts.adamw");
        const auto commands = *rc::gen::resize(
            10, rc::state::gen::commands(
                    Life{},
                    rc::state::gen::execOneOfWithArgs<Train, Train, Eval, Save, Load, Again>()));
        Script script;
        rc::state::runAll(commands, Life{}, script);
        RC_PRE(!script.empty());
        const std::string complaint =
            judge.Complaint(ParseId(base + ".do=" + script), Strategy::kRandom, 1);
        if (!complaint.empty()) RC_FAIL(complaint);
      },
      options));
}

}  // namespace
}  // namespace shardproof
