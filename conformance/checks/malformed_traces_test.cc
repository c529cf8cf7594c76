// A good trace of two ranks, written by hand, and the same with one row changed: none of those is
// silent. The reader refuses it in words, or a check finds it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/checks/check_all.h"
#include "conformance/checks/testing/hand_written.h"
#include "conformance/trace/reader.h"

namespace shardproof {
namespace {

constexpr int kBoth = -1;

struct Change {
  const char* what;
  int rank;  // or kBoth
  std::string row, from, to;
  std::string expect;  // words of the refusal, or "GE-18: words of a finding"
};

struct Seen {
  std::string refusal;
  CheckResult result;
};

Seen See(const RowChange* change) {
  Seen seen;
  Run run;
  try {
    for (int rank = 0; rank < 2; ++rank)
      run.traces.push_back(ReadTrace(HandWrittenTrace(rank, change), "trace"));
  } catch (const TraceError& error) {
    seen.refusal = error.what();
    return seen;
  }
  run.outcomes.resize(2);
  seen.result = CheckAll(run);
  return seen;
}

TEST(Malformed, TheGoodTracePasses) {
  const Seen seen = See(nullptr);
  EXPECT_EQ(seen.refusal, "");
  for (const Finding& finding : seen.result.findings)
    ADD_FAILURE() << finding.requirement << ": " << finding.message;
  for (const char* id : {"GE-01", "GE-02", "GE-03", "GE-05", "GE-06", "GE-07", "GE-08", "GE-09",
                         "GE-11", "GE-15", "GE-16", "GE-17", "GE-18", "GE-19", "FS-33"})
    EXPECT_TRUE(seen.result.judged.contains(id)) << id;
}

void ExpectNotSilent(const Change& change) {
  SCOPED_TRACE(change.what);
  const RowChange row{change.rank, change.row, change.from, change.to};
  const Seen seen = See(&row);
  std::string all = "refused: " + seen.refusal + "\n";
  for (const Finding& finding : seen.result.findings)
    all += finding.requirement + ": " + finding.message + " | " + finding.seen + "\n";
  const size_t colon = change.expect.find(": ");
  const bool finding = colon == 5 && change.expect[2] == '-';
  if (!finding) {
    EXPECT_NE(seen.refusal.find(change.expect), std::string::npos) << all;
    EXPECT_TRUE(seen.refusal.starts_with("trace:")) << "file and line: " << all;
    return;
  }
  const std::string id = change.expect.substr(0, colon), words = change.expect.substr(colon + 2);
  EXPECT_EQ(seen.refusal, "");
  EXPECT_TRUE(std::any_of(seen.result.findings.begin(), seen.result.findings.end(),
                          [&](const Finding& one) {
                            return one.requirement == id &&
                                   (one.message + one.seen).find(words) != std::string::npos;
                          }))
      << all;
}

const std::string kFirstGather = R"({"e":"collective","op":"all_gather")";
const std::string kExchange = R"({"e":"collective","op":"all_to_all_v")";
const std::string kSend = R"({"e":"collective","op":"send")";
const std::string kRecv = R"({"e":"collective","op":"recv")";
const std::string kCompute = R"({"e":"compute")";
const std::string kCallEnd = R"({"e":"call_end","x":"destroy")";
const std::string kCopy = R"({"e":"copy")";
const std::string kHostReduce = R"({"e":"collective","op":"all_reduce","ty":"f32","g":1)";

TEST(Malformed, RowsThatMeanNothingAreRefused) {
  const std::vector<Change> changes = {
      {"copy without a stream", 0, kCopy, R"("s":0,)", "", "copy event needs the key \"s\""},
      {"alloc without a stream", 0, R"({"e":"alloc","s":0,"a":0)", R"("s":0,)", "",
       "alloc event needs the key \"s\""},
      {"free without a stream", 1, R"({"e":"free","s":0,"a":1)", R"("s":0,)", "",
       "free event needs the key \"s\""},
      {"init without a stream", 0, R"({"e":"init")", R"("s":0,)", "",
       "init event needs the key \"s\""},
      {"publish without a stream", 0, R"({"e":"publish")", R"("s":0,)", "",
       "publish event needs the key \"s\""},
      {"send without a peer", 0, kSend, R"("p":THEIRS,)", "", "needs the key \"p\": of send"},
      {"broadcast without a root", 1, R"({"e":"collective","op":"broadcast")", R"("p":0,)", "",
       "needs the key \"p\": of broadcast"},
      {"wait for a request never started", 0, R"({"e":"request_wait")", R"("id":0)", R"("id":5)",
       "a wait for request 5"},
      {"group end without a begin", 0, R"({"e":"group_begin")", "", "", "no open group_begin"},
      {"group begin without an end", 0, R"({"e":"group_end")", "", "",
       "a group_begin without a group_end"},
      {"await before its post", 1, R"({"e":"thread_post")", R"("id":0)", R"("id":1)",
       "hand-over 0 before its post"},
      {"collective of a group without the rank", 0, kFirstGather, R"("g":0)", R"("g":3)",
       "rank 0 is no member of group 3"},
      {"collective without a dtype", 0, kFirstGather, R"("ty":"f32",)", "", "needs the key \"ty\""},
      {"exchange without counts", 0, kExchange, R"("sc":[1,1],)", "", "needs the key \"sc\""},
      {"exchange with a count too few", 0, kExchange, R"("rc":[1,1])", R"("rc":[1])",
       "the group has 2 members"},
      {"entry call of another number", 1, R"({"e":"call_begin","x":"train_step")", R"("c":1)",
       R"("c":4)", "\"c\":4 where entry call 1"},
      {"request of a stream's collective", 0, kFirstGather, R"("s":1,)", R"("s":1,"rq":0,)",
       "\"rq\" with \"s\""},
  };
  for (const Change& change : changes) ExpectNotSilent(change);
}

TEST(Malformed, ObjectsAreFollowed) {
  const std::vector<Change> changes = {
      {"use after free on one stream", 0, kCompute, kCompute,
       "{\"e\":\"free\",\"s\":0,\"a\":1,\"c\":1}\n" + kCompute, "GE-18: a block that was freed"},
      {"range outside of its block", 0, kCompute, "[1,1,0,128]", "[1,1,8,128]",
       "GE-18: outside of its block"},
      {"range shorter than a gather needs", 1, kFirstGather, "[1,2,0,128]", "[1,2,0,64]",
       "GE-18: shorter than what it writes"},
      {"range shorter than an exchange needs", 1, kExchange, "[3,1,0,8]", "[3,1,0,4]",
       "GE-18: shorter than what it reads"},
      {"block never allocated", 0, R"({"e":"alloc","s":0,"a":3)", R"("a":3)", R"("a":4)",
       "GE-18: never allocated"},
      {"block allocated twice", 0, R"({"e":"alloc","s":0,"a":3)", R"("a":3)", R"("a":1)",
       "GE-18: under the number of another"},
      {"block freed twice", 0, R"({"e":"free","s":0,"a":3)", R"("a":3)", R"("a":1)",
       "GE-18: freed twice"},
      {"block never freed", 0, R"({"e":"free","s":0,"a":3)", "", "", "FS-33: left behind"},
      {"range that is neither read nor written", 0, kCompute, "[3,2,0,64]", "[3,0,0,64]",
       "GE-18: neither"},
      {"host access to device memory", 0, R"({"e":"host_access")", "[2,", "[3,",
       "GE-18: the host touches device memory"},
      {"copy into another length", 0, kCopy, "[2,2,0,64]", "[2,2,0,32]", "GE-18: a copy"},
      {"collective after group_destroy", kBoth, kCallEnd, kCallEnd,
       R"({"e":"collective","op":"barrier","g":2,"s":0,"c":2})"
       "\n" +
           kCallEnd,
       "GE-19: used after it was destroyed"},
      {"work on a destroyed stream", 0, kCallEnd, kCallEnd,
       "{\"e\":\"stream_sync\",\"s\":0,\"c\":2}\n" + kCallEnd, "GE-19: stream compute is used"},
      {"wait for a destroyed event", 0, kCallEnd, kCallEnd,
       "{\"e\":\"event_sync\",\"ev\":0,\"f\":true,\"c\":2}\n" + kCallEnd,
       "GE-19: event object 0 is used"},
      {"request never finished", 0, R"({"e":"request_wait")", "", "",
       "GE-19: request 0 is never waited for"},
      {"request started again", kBoth, kHostReduce, kHostReduce,
       R"({"e":"collective","op":"barrier","g":1,"rq":0,"c":1})"
       "\n" +
           kHostReduce,
       "GE-19: request 0 is started again"},
      {"host and streams on one communicator", kBoth, kHostReduce, R"("g":1)", R"("g":0)",
       "GE-19: by the host and from streams"},
      {"two communicators in one comm", kBoth, R"({"group":2)", "both/0", "both",
       "GE-19: two communicators have one"},
      {"one communicator in two comms", 1, R"({"group":2)", "both/0", "theirs",
       "GE-19: different names"},
  };
  for (const Change& change : changes) ExpectNotSilent(change);
}

TEST(Malformed, RanksThatDoNotMeetAreFound) {
  const std::vector<Change> changes = {
      {"labels of two modules", 1, kFirstGather, R"("m":1)", R"("m":7)", "GE-01: module 7"},
      {"labels of two purposes", 0, kFirstGather, "param_full", "grad", "GE-01: gradients"},
      {"a gather left out", 1, kFirstGather, "", "",
       "GE-01: rank 0 issues 1 operation that rank 1 does not: #0"},
      {"another dtype", 1, kFirstGather, R"("ty":"f32")", R"("ty":"bf16")", "GE-01: bf16"},
      {"another root", 1, R"({"e":"collective","op":"broadcast")", R"("p":0)", R"("p":1)",
       "GE-01: root 1"},
      {"counts that disagree", 1, kExchange, R"("rc":[1,1])", R"("rc":[0,1])", "GE-02: expects 0"},
      {"a message of another length", 1, kRecv, R"("k":1)", R"("k":0)", "GE-09: meets"},
      {"a message to the wrong rank", 0, kSend, "THEIRS", "0", "GE-09: "},
      {"members in another order", 1, R"({"group":0)", "[0,1]", "[1,0]", "GE-08: "},
      {"creations of other lists", 1, R"({"e":"group_create")", "[0,1]", "[1,0]", "GE-08: "},
      {"wait before any record", 0, R"({"e":"record","ev":1)", "", "", "GE-07: before any record"},
      {"no wait for the gather", 0, R"({"e":"wait","ev":1)", "", "", "GE-05: nothing orders them"},
      {"no sync before the host reads", 0, R"({"e":"stream_sync")", "", "",
       "GE-06: nothing orders them"},
  };
  for (const Change& change : changes) ExpectNotSilent(change);
}

}  // namespace
}  // namespace shardproof
