// fault_test: is a fault what its text says, and is a knob that is ignored read all the same?
#include "conformance/host/fault.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "conformance/host/faulty.h"

namespace shardproof {
namespace {

TEST(Fault, TextComesBack) {
  for (const char* text :
       {"event_wait:3:drop@1", "communicate:4:corrupt=1@0", "copy:0:delay=7@2",
        "mem_free:1:duplicate@0", "event_record:2:reorder@3", "knob:recompute:ignore",
        "knob:microbatches:ignore=1@2", "knob:units:ignore=none"}) {
    EXPECT_EQ(FaultText(ParseFault(text)), text);
  }
}

TEST(Fault, BadTextsAreRefused) {
  for (const char* text : {"event_wait:3:ignore", "event_wait:x:drop", "knob:recompute:drop",
                           "knob::ignore", "knob:lr", "knob:lr:ignore@x", "event_wait:3:drop@",
                           "event_wait:3:drop=", "copy:0:delay=@1",
                           "knob:lr:ignore=", "knob:lr:ignore=1@", "event_wait:3:drop@@1"}) {
    EXPECT_THROW(ParseFault(text), std::invalid_argument) << text;
  }
}

// One that was cut to 32 bits struck rank 0.
TEST(Fault, NumbersHaveBounds) {
  const std::pair<const char*, const char*> refused[] = {
      {"event_wait:0:drop@4294967296", "\"4294967296\" is no rank"},
      {"event_wait:0:drop@-1", "\"-1\" is no rank"},
      {"knob:lr:ignore@4294967297", "\"4294967297\" is no rank"},
      {"event_wait:-3:drop", "\"-3\" is no number of a call"},
      {"event_wait:9223372036854775808:drop", "\"9223372036854775808\" is no number of a call"},
      {"event_wait::drop", "\"\" is no number of a call"},
      {"copy:0:delay=4294967297", "\"4294967297\" is no number of calls, a number from 1 to"},
      {"copy:0:delay=0", "\"0\" is no number of calls"},
      {"communicate:0:corrupt=4", "\"4\" is no way to corrupt communicate, a number from 0 to 3"},
      {"copy:0:corrupt=1", "\"1\" is no way to corrupt copy, a number from 0 to 0"},
      {"copy:0:drop=2", "\"2\" is an amount, which delay and corrupt alone have"}};
  for (const auto& [text, why] : refused) {
    try {
      ParseFault(text);
      FAIL() << text;
    } catch (const std::invalid_argument& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("fault \"" + std::string(text) + "\": " + why), std::string::npos)
          << said;
    }
  }
  EXPECT_EQ(ParseFault("event_wait:9223372036854775807:drop@2147483647").rank, 2147483647);
}

TEST(Fault, HitsItsRankOrAll) {
  const Fault all = ParseFault("knob:recompute:ignore");
  EXPECT_TRUE(all.Hits(0, 0));
  EXPECT_TRUE(all.Hits(5, 0));
  EXPECT_FALSE(all.Hits(5, 1)) << "of another engine instance";
  const Fault one = ParseFault("knob:recompute:ignore@5");
  EXPECT_TRUE(one.Hits(5, 0));
  EXPECT_FALSE(one.Hits(0, 0));
}

// A host that tells every knob and counts who asks.
struct TellingHost : spf_host {
  int asked = 0;
  TellingHost() : spf_host{} {
    knob = [](spf_host* h, const char*) -> const char* {
      ++static_cast<TellingHost*>(h)->asked;
      return "told";
    };
  }
};

TEST(Fault, AnIgnoredKnobIsReadAndNotHeeded) {
  TellingHost host;
  FaultyHost deaf(&host, ParseFault("knob:units:ignore"));
  EXPECT_EQ(deaf.table()->knob(deaf.table(), "units"), nullptr);
  EXPECT_EQ(host.asked, 1);
  EXPECT_TRUE(deaf.fired());
  EXPECT_STREQ(deaf.table()->knob(deaf.table(), "lr"), "told");
  FaultyHost other(&host, ParseFault("knob:lr:ignore=0.5"));
  EXPECT_STREQ(other.table()->knob(other.table(), "lr"), "0.5");
}

// A host that tells every knob this value.
struct ValueHost : spf_host {
  const char* const value;
  explicit ValueHost(const char* told) : spf_host{}, value(told) {
    knob = [](spf_host* h, const char*) { return static_cast<ValueHost*>(h)->value; };
  }
};

TEST(Fault, AKnobWithTheSameValueIsNotStruckHoweverItIsWritten) {
  struct Row {
    const char *told, *used;
    bool strikes;
  };
  for (const Row& row : {Row{"1", "01", false}, Row{"0.001", "1e-3", false},
                         Row{"adamw", "adamw", false}, Row{"1", "2", true}, Row{"1", "1x", true},
                         Row{"01x", "1x", true}, Row{"true", "1", true}}) {
    ValueHost host(row.told);
    FaultyHost deaf(&host, ParseFault("knob:lr:ignore=" + std::string(row.used)));
    EXPECT_STREQ(deaf.table()->knob(deaf.table(), "lr"), row.used);
    EXPECT_EQ(deaf.fired(), row.strikes) << row.told << " and " << row.used;
  }
}

}  // namespace
}  // namespace shardproof
