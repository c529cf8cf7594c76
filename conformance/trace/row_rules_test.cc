// Rows that mean nothing are refused where they stand, and rows that only look odd are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/trace/reader.h"

namespace shardproof {
namespace {

using testing::HasSubstr;

// Rank 0 of a world of two: group 0 is both ranks, group 1 the other rank alone, one stream.
const std::string kHead =
    "{\"shardproof_trace\":1,\"rank\":0,\"world\":2,\"case\":\"c\"}\n"
    "{\"group\":0,\"comm\":\"both\",\"name\":\"both\",\"ranks\":[0,1]}\n"
    "{\"group\":1,\"comm\":\"other\",\"name\":\"other\",\"ranks\":[1]}\n"
    "{\"stream\":0,\"name\":\"compute\"}\n";
constexpr int64_t kHeadLines = 4;

// Why the rows are refused; empty: they are not. line: of which of them, from 1.
std::string Why(const std::vector<std::string>& rows, int64_t* line = nullptr,
                const std::string& end = "complete") {
  std::string text = kHead;
  for (const std::string& row : rows) text += row + "\n";
  text += "{\"end\":" + std::to_string(rows.size()) + ",\"status\":\"" + end + "\"}\n";
  try {
    ReadTrace(text, "file");
  } catch (const TraceError& error) {
    if (line != nullptr) *line = error.line() - kHeadLines;
    return error.what();
  }
  return "";
}

// The last row is refused, with these words.
void ExpectRefused(const std::vector<std::string>& rows, const std::string& words) {
  int64_t line = 0;
  EXPECT_THAT(Why(rows, &line), HasSubstr(words)) << rows.back();
  EXPECT_EQ(line, static_cast<int64_t>(rows.size())) << rows.back();
}
void ExpectAccepted(const std::vector<std::string>& rows) {
  EXPECT_EQ(Why(rows), "") << rows.back();
}

TEST(RowRules, DeviceMemoryIsTouchedOnAStream) {
  const std::string on = R"(,"s":0})";
  for (const std::string row :
       {R"({"e":"copy","r":[[0,1,0,4],[0,2,4,4]])", R"({"e":"alloc","a":0,"k":64)",
        R"({"e":"free","a":0)", R"({"e":"init","id":1,"k":4,"ty":"f32","r":[[0,2,0,16]])",
        R"({"e":"publish","res":"param","id":1,"k":4,"ty":"f32","r":[[0,1,0,16]])"}) {
    ExpectRefused({row + "}"}, "event needs the key \"s\"");
    ExpectAccepted({row + on});
  }
}

TEST(RowRules, PinnedMemoryNeedsNoStream) {
  ExpectAccepted({R"({"e":"alloc","a":0,"k":64,"id":1})", R"({"e":"free","a":0})"});
  ExpectRefused({R"({"e":"alloc","a":0,"k":64,"id":2})"}, "needs the key \"s\"");
  ExpectRefused({R"({"e":"alloc","a":0,"k":64,"id":1})", R"({"e":"free","a":1})"},
                "needs the key \"s\"");
}

TEST(RowRules, ElementsHaveADtype) {
  ExpectRefused({R"({"e":"init","id":1,"s":0,"k":4})"}, "needs the key \"ty\"");
  ExpectRefused({R"({"e":"publish","res":"loss","s":0,"k":4,"ty":8})"}, "needs the key \"ty\"");
  ExpectRefused({R"({"e":"collective","g":0,"op":"all_reduce","s":0,"k":4})"},
                "needs the key \"ty\": of all_reduce");
  ExpectAccepted({R"({"e":"collective","g":0,"op":"barrier","s":0})"});
  ExpectRefused({R"({"e":"collective","g":0,"op":"barrier","s":0,"r":[[1,2,0,4]]})"},
                "a barrier moves no bytes");
}

TEST(RowRules, ARefusedCallBreaksARequirementThatIsListed) {
  ExpectAccepted({R"({"e":"refused","x":"mem_free","y":"freed before","breaks":"GE-18"})"});
  ExpectAccepted({R"({"e":"refused","x":"mem_free"})"});
  ExpectRefused({R"({"e":"refused","x":"mem_free","breaks":"GE-05"})"},
                "\"breaks\":\"GE-05\" is no name that FORMAT.md lists");
  ExpectRefused({R"({"e":"refused","x":"mem_free","breaks":5})"}, "breaks");
  ExpectRefused({R"({"e":"refused","x":"mem_free","breaks":"GE-18","breaks":"GE-18"})"}, "twice");
  ExpectRefused({R"({"e":"stream_sync","s":0,"breaks":"GE-18"})"}, "stands only in refused");
}

TEST(RowRules, SizesBeyondAllMemoryAreRefused) {
  ExpectAccepted({R"({"e":"launch","s":0,"r":[[1,1,1099511627776,1099511627776]]})"});
  for (
      const std::string row :
      {R"({"e":"alloc","s":0,"a":0,"k":1099511627777})",
       R"({"e":"launch","s":0,"r":[[1,1,1099511627777,4]]})",
       R"({"e":"launch","s":0,"r":[[1,1,0,1099511627777]]})",
       R"({"e":"publish","res":"grad","s":0,"ty":"f32","k":4,"o":1099511627777})",
       R"({"e":"publish","res":"grad","s":0,"ty":"f32","k":4,"o":-1})",
       R"({"e":"collective","g":0,"op":"all_gather_v","s":0,"ty":"f32","rc":[1099511627777,1]})"}) {
    ExpectRefused({row}, "is not within 0..1099511627776");
  }
}

TEST(RowRules, RootsAndPeersAreNamed) {
  for (const char* op : {"broadcast", "send", "recv", "reduce", "gather", "scatter"}) {
    const std::string row =
        R"({"e":"collective","g":0,"s":0,"ty":"f32","k":4,"op":")" + std::string(op) + "\"";
    ExpectRefused({row + "}"}, "needs the key \"p\": of " + std::string(op));
    ExpectAccepted({row + ",\"p\":1}"});
  }
}

TEST(RowRules, CountsAreOnePerMember) {
  const std::string exchange = R"({"e":"collective","g":0,"s":0,"ty":"f32","op":"all_to_all_v")";
  ExpectRefused({exchange + "}"}, "needs the key \"sc\"");
  ExpectRefused({exchange + R"(,"sc":[1,1]})"}, "needs the key \"rc\"");
  ExpectRefused({exchange + R"(,"sc":[1],"rc":[1,1]})"}, "\"sc\" has 1 counts, the group has 2");
  ExpectRefused({exchange + R"(,"sc":[1,1],"rc":[1,1,1]})"}, "\"rc\" has 3 counts");
  ExpectAccepted({exchange + R"(,"sc":[1,1],"rc":[1,1]})"});
  const std::string gather = R"({"e":"collective","g":0,"s":0,"ty":"f32","op":"all_gather_v")";
  ExpectRefused({gather + "}"}, "needs the key \"rc\"");
  ExpectAccepted({gather + R"(,"rc":[1,1]})"});
}

TEST(RowRules, OnlyMembersUseAGroup) {
  ExpectRefused({R"({"e":"collective","g":1,"op":"all_reduce","s":0,"ty":"f32","k":4})"},
                "rank 0 is no member of group 1 (\"other\")");
  ExpectRefused({R"({"e":"group_create","pg":1,"x":"sub"})"}, "no member of group 1");
  ExpectRefused({R"({"e":"group_create","pg":0,"g":1,"x":"sub","ranks":[1]})"}, "no member");
  ExpectRefused({R"({"e":"group_destroy","g":1})"}, "no member of group 1");
  ExpectRefused({R"({"e":"group_register","g":1,"a":0,"k":4})"}, "no member of group 1");
}

TEST(RowRules, RequestsAreStartedOnTheHost) {
  const std::string start = R"({"e":"collective","g":0,"op":"all_reduce","ty":"f32","k":4,"rq":7})";
  ExpectRefused({R"({"e":"request_wait","id":7})"}, "request 7, which no collective");
  ExpectRefused({start, R"({"e":"request_wait","id":8})"}, "request 8");
  ExpectRefused({start, R"({"e":"request_wait","id":-1})"}, "needs the key \"id\"");
  ExpectAccepted({start, R"({"e":"request_wait","id":7})"});
  ExpectRefused({R"({"e":"collective","g":0,"op":"all_reduce","ty":"f32","k":4,"s":0,"rq":7})"},
                "\"rq\" with \"s\"");
}

TEST(RowRules, EntryCallsAreNumberedFromZero) {
  const std::string create = R"({"e":"call_begin","x":"create","c":0})";
  ExpectAccepted({create, R"({"e":"call_begin","x":"train_step","c":1})"});
  ExpectAccepted({create, R"({"e":"call_begin","x":"create","c":0,"n":1})"});
  ExpectAccepted({R"({"e":"call_begin","x":"create"})"});
  ExpectRefused({create, R"({"e":"call_begin","x":"train_step","c":7})"},
                "\"c\":7 where entry call 1 of engine instance 0 begins");
  ExpectRefused({create, create}, "\"c\":0 where entry call 1");
}

TEST(RowRules, AnAwaitFollowsItsPost) {
  const std::string post = R"({"e":"thread_post","id":3})",
                    await = R"({"e":"thread_await","id":3,"t":1})";
  ExpectRefused({await}, "await of hand-over 3 before its post");
  ExpectRefused({post, await, post}, "hand-over 3 is posted twice");
  ExpectAccepted({post, await, await});
}

TEST(RowRules, GroupsOfCallsBeginAndEndOnTheirThread) {
  const std::string begin = R"({"e":"group_begin"})", end = R"({"e":"group_end"})";
  ExpectRefused({end}, "group_end on host thread 0");
  ExpectRefused({begin, R"({"e":"group_end","t":1})"}, "group_end on host thread 1");
  ExpectRefused({begin, end, end}, "no open group_begin");
  ExpectAccepted({begin, begin, end, end});
}

TEST(RowRules, ACompleteTraceLeavesNoGroupOfCallsOpen) {
  const std::vector<std::string> open = {R"({"e":"group_begin"})"};
  int64_t line = 0;
  EXPECT_THAT(Why(open, &line), HasSubstr("a group_begin without a group_end"));
  EXPECT_EQ(line, 2) << "the footer";
  EXPECT_EQ(Why(open, nullptr, "died"), "");
  EXPECT_EQ(Why(open, nullptr, "aborted"), "");
}

}  // namespace
}  // namespace shardproof
