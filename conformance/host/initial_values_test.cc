// initial_values_test: when does the host answer init, with init_device = meta and without?
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/abi/spf.hpp"
#include "conformance/fabric/sim/testing.h"
#include "conformance/host/host.h"

namespace shardproof {
namespace {

// What init answers in each of these entry calls of one engine, in order: "create ok, load: text".
std::string Answers(const std::string& init_device, const std::vector<std::string>& calls,
                    bool reads = true) {
  std::string answers;
  RunSim(1, With(TimingPolicy::kEager), [&](Fabric& fabric) {
    const Model model(ModelConfig{}, 64);
    Recorder recorder(0, 1, "init", RecordLevel::kDigests);
    HostConfig config;
    config.model = &model;
    config.data_rank = 0;
    if (!init_device.empty()) config.knobs = {{"init_device", init_device}};
    Host host(config, fabric, recorder);
    spf::Host h(host.table());
    spf_stream stream = nullptr;
    spf_addr block = 0;
    for (const std::string& call : calls) {
      host.BeginCall(call, -1);
      if (reads) h.Knob("init_device", "host");
      if (stream == nullptr) {
        stream = h.Stream("main");
        block = h.Alloc(stream, 64, spf::For(SPF_FOR_MAIN_PARAM));
      }
      const spf_status status = h.raw()->init(h.raw(), stream, 0, 0, 4, SPF_F32, block);
      answers += answers.empty() ? call : ", " + call;
      if (status == SPF_REFUSED) answers += ": " + std::string(h.raw()->last_error(h.raw()));
      host.EndCall(SPF_OK);
    }
    host.BeginCall("destroy", -1);
    h.GiveBack();
    host.EndCall(SPF_OK);
  });
  return answers;
}

TEST(InitialValues, AreThereForEveryCallByDefault) {
  for (const char* value : {"", "host"})
    EXPECT_EQ(Answers(value, {"create", "load", "train_step"}), "create, load, train_step");
}

// The case is unsupported for it, and no call of its is at fault.
TEST(InitialValues, AreThereForAnEngineThatDoesNotReadTheKnob) {
  EXPECT_EQ(Answers("meta", {"create", "load", "train_step"}, false), "create, load, train_step");
}

TEST(InitialValues, AreRefusedInCreateOfAMetaEngine) {
  EXPECT_EQ(Answers("meta", {"create", "train_step", "load"}),
            "create: init: init_device = meta: create gives parameters no values; the first call "
            "after it brings them (rank 0, create), train_step, load");
}

TEST(InitialValues, AreRefusedInALoadThatComesFirst) {
  EXPECT_EQ(Answers("meta", {"load"}), "load");  // of an engine that was never created
  const std::string refused =
      "create: init: init_device = meta: create gives parameters no values; the first call after "
      "it brings them (rank 0, create), load: init: init_device = meta: this load is the first "
      "call after create, and brings all values out of the checkpoint (rank 0, load)";
  EXPECT_EQ(Answers("meta", {"create", "load", "load"}), refused + ", load");
  EXPECT_EQ(Answers("meta", {"create", "load", "save", "create", "load"}),
            refused + ", save, " + refused);
}

}  // namespace
}  // namespace shardproof
