#include "reference/core/host.h"

#include <gtest/gtest.h>

#include <string>

namespace reference {
namespace {

// Writes down streams and events: "send s1", "record e1 s1", "wait e1 s2".
struct WritingHost : spf_host {
  WritingHost() : spf_host{} {
    size = sizeof(spf_host);
    communicate = [](spf_host* h, int32_t, const spf_collective* ops) {
      return Self(h).Say("send " + Number("s", ops[0].stream));
    };
    event_create = [](spf_host* h, spf_event* out) {
      *out = reinterpret_cast<spf_event>(++Self(h).events);
      return SPF_OK;
    };
    event_record = [](spf_host* h, spf_event event, spf_stream stream) {
      return Self(h).Say("record " + Number("e", event) + " " + Number("s", stream));
    };
    event_wait = [](spf_host* h, spf_event event, spf_stream stream) {
      return Self(h).Say("wait " + Number("e", event) + " " + Number("s", stream));
    };
    event_destroy = [](spf_host* h, spf_event event) {
      return Self(h).Say("destroy " + Number("e", event));
    };
  }

  static WritingHost& Self(spf_host* h) { return *static_cast<WritingHost*>(h); }
  static std::string Number(const char* kind, const void* handle) {
    return kind + std::to_string(reinterpret_cast<uintptr_t>(handle));
  }
  spf_status Say(const std::string& line) {
    said.push_back(line);
    return SPF_OK;
  }

  std::vector<std::string> said;
  uintptr_t events = 0;
};

using Lines = std::vector<std::string>;

std::vector<spf_collective> On(uintptr_t stream) {
  spf_collective op{};
  op.stream = reinterpret_cast<spf_stream>(stream);
  return {op};
}

TEST(Host, StreamsDecideByDefault) {
  WritingHost raw;
  Host host(&raw);
  for (uintptr_t stream : {1, 2, 1}) host.Communicate(On(stream));
  host.EndChain();
  EXPECT_EQ(raw.said, (Lines{"send s1", "send s2", "send s1"}));
}

TEST(Host, EachCollectiveWaitsForTheOneBeforeIt) {
  WritingHost raw;
  Host host(&raw);
  host.KeepOneInFlight();
  for (uintptr_t stream : {1, 2, 1}) host.Communicate(On(stream));
  host.EndChain();
  EXPECT_EQ(raw.said, (Lines{"send s1", "record e1 s1", "wait e1 s2", "send s2", "record e1 s2",
                             "wait e1 s1", "send s1", "record e1 s1", "destroy e1"}));
}

TEST(Host, AStreamWaitsForItselfAnyway) {
  WritingHost raw;
  Host host(&raw);
  host.KeepOneInFlight();
  for (uintptr_t stream : {1, 1, 2}) host.Communicate(On(stream));
  EXPECT_EQ(raw.said, (Lines{"send s1", "record e1 s1", "send s1", "record e1 s1", "wait e1 s2",
                             "send s2", "record e1 s2"}));
}

TEST(Host, NoOperationIsNoLinkOfTheChain) {
  WritingHost raw;
  Host host(&raw);
  host.KeepOneInFlight();
  host.Communicate({});
  host.EndChain();
  EXPECT_EQ(raw.said, Lines{});
}

}  // namespace
}  // namespace reference
