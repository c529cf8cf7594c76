#include "conformance/trace/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "conformance/trace/trace_builder.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

using testing::HasSubstr;

const std::string kHeader =
    "{\"shardproof_trace\":1,\"rank\":0,\"world\":2,\"case\":\"c\",\"provides\":[\"sync\"]}\n";
const std::string kGroup = "{\"group\":0,\"comm\":\"dp#0\",\"name\":\"dp_cp\",\"ranks\":[0,1]}\n";
const std::string kStream = "{\"stream\":0,\"name\":\"compute\"}\n";

std::string Footer(int events) {
  return "{\"end\":" + std::to_string(events) + ",\"status\":\"complete\"}\n";
}

// Why the text is refused, and at which line.
struct Refusal {
  int64_t line = -1;
  std::string what;
};
Refusal RefusalOf(const std::string& text) {
  try {
    ReadTrace(text, "file");
  } catch (const TraceError& error) {
    return {error.line(), error.what()};
  }
  return {};
}

// A well-formed trace (header, group, stream) with one event line, which is line 4.
void ExpectRefused(const std::string& event, const std::string& why) {
  const Refusal refusal = RefusalOf(kHeader + kGroup + kStream + event + "\n" + Footer(1));
  EXPECT_EQ(refusal.line, 4) << event << "\n" << refusal.what;
  EXPECT_THAT(refusal.what, HasSubstr("file:4: ")) << event;
  EXPECT_THAT(refusal.what, HasSubstr(why)) << event;
}

void ExpectAccepted(const std::string& event) {
  EXPECT_EQ(RefusalOf(kHeader + kGroup + kStream + event + "\n" + Footer(1)).what, "") << event;
}

TEST(Reader, DefaultsStandForKeysThatAreLeftOut) {
  const Trace trace = ReadTrace(
      kHeader + kGroup + kStream + "{\"e\":\"record\",\"ev\":4,\"s\":0}\n" + Footer(1), "file");
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].kind, EventKind::kRecord);
  EXPECT_EQ(trace.events[0].event, 4);
  EXPECT_EQ(trace.events[0].group, -1);
  EXPECT_EQ(trace.events[0].sample, -1);
  EXPECT_TRUE(trace.provides.sync);
  EXPECT_FALSE(trace.provides.memory);
  EXPECT_EQ(trace.end, TraceEnd::kComplete);
}

TEST(Reader, UpdatesAreExactUnlessTheHeaderSaysBounded) {
  const auto header = [](const std::string& updates) {
    return "{\"shardproof_trace\":1,\"rank\":0,\"world\":1" + updates + "}\n";
  };
  EXPECT_FALSE(ReadTrace(header("") + Footer(0), "file").bounded_updates);
  EXPECT_TRUE(ReadTrace(header(",\"updates\":\"bounded\"") + Footer(0), "file").bounded_updates);
  EXPECT_THAT(RefusalOf(header(",\"updates\":\"exact\"") + Footer(0)).what,
              HasSubstr("\"updates\" may be \"bounded\", and is \"exact\""));
}

TEST(Reader, EmptyLinesAndSpacesAreAllowed) {
  ExpectAccepted(" { \"e\" : \"record\" , \"ev\" : 4 , \"s\" : 0 } \r");
  EXPECT_EQ(RefusalOf(kHeader + "\n\n" + Footer(0)).what, "");
}

TEST(Reader, ALastLineWithoutItsNewlineIsComplete) {
  EXPECT_EQ(RefusalOf(kHeader + "{\"end\":0,\"status\":\"complete\"}").what, "");
}

TEST(Reader, NamesOrNumbersNameAnEnumerator) {
  ExpectAccepted("{\"e\":\"collective\",\"g\":0,\"op\":\"all_gather\",\"s\":0,\"ty\":\"f32\"}");
  ExpectAccepted("{\"e\":\"collective\",\"g\":0,\"op\":\"barrier\"}");
  ExpectAccepted("{\"e\":\"collective\",\"g\":0,\"op\":1,\"s\":0,\"ty\":6}");
  ExpectRefused("{\"e\":\"collective\",\"g\":0,\"op\":42}", "\"op\":42 is no collective");
  ExpectRefused("{\"e\":\"collective\",\"g\":0,\"op\":\"all_father\"}",
                "\"op\":\"all_father\" is no name");
  ExpectRefused("{\"e\":\"collective\",\"g\":0,\"op\":256}", "not within 0..255");
}

TEST(Reader, AStreamIsDefinedByItsCreation) {
  ExpectAccepted("{\"e\":\"stream_create\",\"s\":1,\"x\":\"comm\"}");
  ExpectRefused("{\"e\":\"stream_create\",\"s\":2,\"x\":\"comm\"}", "stream 2 is not defined");
}

TEST(Refused, BadJson) {
  ExpectRefused("{\"e\":\"record\",\"ev\":4,\"s\":0", "JSON");
  ExpectRefused("{\"e\":\"record\",\"ev\":4,\"s\":0]", "JSON");
  ExpectRefused("{\"e\":\"record\" \"ev\":4,\"s\":0}", "JSON");
  ExpectRefused("{\"e\":\"record\",\"ev\":04,\"s\":0}", "JSON");
  ExpectRefused("\"e\"", "type");
  ExpectRefused("[1]", "type");
  ExpectRefused("{\"e\":\"record\",\"ev\":4,\"s\":0} {\"e\":\"record\",\"ev\":4,\"s\":0}",
                "more than one object");
  ExpectRefused("{\"e\":\"explain\",\"x\":\"\xFF\"}", "JSON");
}

TEST(Refused, UnknownKindsAndKeys) {
  ExpectRefused("{\"e\":\"recrod\",\"ev\":4,\"s\":0}", "unknown kind of event \"recrod\"");
  ExpectRefused("{\"e\":\"record\",\"event\":4,\"s\":0}", "unknown key \"event\"");
  ExpectRefused("{\"e\":\"record\",\"ev\":4,\"a_long_key_that_fits_nowhere\":0}", "unknown key");
  ExpectRefused("{\"x\":\"record\"}", "the first key");
  ExpectRefused("{\"i\":0,\"x\":\"record\"}", "without \"e\"");
}

TEST(Refused, AKeyTwice) {
  ExpectRefused("{\"e\":\"record\",\"ev\":4,\"s\":0,\"s\":0}", "key \"s\" twice");
}

TEST(Refused, ValuesOfTheWrongType) {
  ExpectRefused("{\"e\":\"record\",\"ev\":\"4\",\"s\":0}", "type");
  ExpectRefused("{\"e\":\"record\",\"ev\":4.5,\"s\":0}", "type");
  ExpectRefused("{\"e\":7,\"ev\":4,\"s\":0}", "type");
  ExpectRefused("{\"e\":\"publish\",\"res\":\"grad\",\"d\":\"xyz\"}", "hexadecimal");
  ExpectRefused("{\"e\":\"publish\",\"res\":\"grad\",\"k\":1,\"v\":[\"one\"]}", "is no value");
}

TEST(Refused, IndicesThatLeadNowhere) {
  ExpectRefused("{\"e\":\"group_destroy\",\"g\":1}", "group 1 is not defined");
  ExpectRefused("{\"e\":\"group_register\",\"g\":1,\"a\":3,\"k\":64}", "group 1 is not defined");
  ExpectRefused("{\"e\":\"group_deregister\",\"g\":1,\"a\":3}", "group 1 is not defined");
  ExpectRefused("{\"e\":\"group_create\",\"pg\":3,\"x\":\"ep\"}", "group 3 is not defined");
  ExpectRefused("{\"e\":\"group_create\",\"pg\":0,\"x\":\"ep\",\"ranks\":[0,2]}",
                "rank 2 is not defined");
  ExpectRefused("{\"e\":\"record\",\"ev\":4,\"s\":1}", "stream 1 is not defined");
  ExpectRefused("{\"e\":\"collective\",\"g\":0,\"op\":\"broadcast\",\"p\":2}",
                "peer 2 is not defined");
  ExpectRefused("{\"e\":\"record\",\"ev\":-2,\"s\":0}", "not within -1");
  ExpectRefused("{\"e\":\"record\",\"ev\":99999999,\"s\":0}", "not within");
  ExpectRefused("{\"e\":\"launch\",\"s\":0,\"r\":[[-1,1,0,4]]}", "bytes of no allocation");
  ExpectRefused("{\"e\":\"launch\",\"s\":0,\"r\":[[1,4,0,4]]}", "not within 0..3");
  ExpectRefused("{\"e\":\"launch\",\"s\":0,\"r\":[[1,1,0]]}", "a range is");
  ExpectRefused("{\"e\":\"launch\",\"s\":0,\"r\":[[1,1,0,4,5]]}", "a range is");
  ExpectRefused("{\"e\":\"compute\",\"s\":0,\"rd\":[[1,4]]}", "a read is");
  ExpectRefused("{\"e\":\"compute\",\"s\":0,\"rd\":[[1,2,\"ff\",[1]]]}", "as many values");
  ExpectRefused("{\"e\":\"publish\",\"res\":\"grad\",\"s\":0,\"ty\":\"f32\",\"k\":2,\"v\":[1]}",
                "as many values");
}

TEST(Refused, AnEventWithoutWhatItIsAbout) {
  ExpectRefused("{\"e\":\"wait\",\"ev\":4}", "wait event needs the key \"s\"");
  ExpectRefused("{\"e\":\"wait\",\"ev\":-1,\"s\":0}", "needs the key \"ev\"");
  ExpectRefused("{\"e\":\"collective\",\"g\":0}", "needs the key \"op\"");
  ExpectAccepted("{\"e\":\"group_register\",\"g\":0,\"a\":3,\"k\":64}");
  ExpectRefused("{\"e\":\"group_register\",\"a\":3,\"k\":64}",
                "group_register event needs the key \"g\"");
  ExpectRefused("{\"e\":\"group_register\",\"g\":0,\"a\":-1,\"k\":64}", "needs the key \"a\"");
  ExpectRefused("{\"e\":\"group_register\",\"g\":0,\"a\":3}", "needs the key \"k\"");
  ExpectAccepted("{\"e\":\"group_deregister\",\"g\":0,\"a\":3}");
  ExpectRefused("{\"e\":\"group_deregister\",\"g\":0}",
                "group_deregister event needs the key \"a\"");
  ExpectRefused("{\"e\":\"group_deregister\",\"a\":3}", "needs the key \"g\"");
}

TEST(Refused, ALineThatIsMissingOrOfAnotherTrace) {
  ExpectRefused("{\"i\":5,\"e\":\"record\",\"ev\":4,\"s\":0}", "event 5 where event 0 is due");
  const Refusal header = RefusalOf(kHeader + kHeader + Footer(0));
  EXPECT_EQ(header.line, 2);
  EXPECT_THAT(header.what, HasSubstr("second header"));
  const Refusal count = RefusalOf(kHeader + Footer(3));
  EXPECT_EQ(count.line, 2);
  EXPECT_THAT(count.what, HasSubstr("counts 3 events, but 0 were read"));
  const Refusal after = RefusalOf(kHeader + Footer(0) + Footer(0));
  EXPECT_EQ(after.line, 3);
  EXPECT_THAT(after.what, HasSubstr("after the footer"));
}

TEST(Refused, AHeaderThatSaysTooLittle) {
  EXPECT_EQ(RefusalOf("").line, 1);
  EXPECT_THAT(RefusalOf("").what, HasSubstr("empty"));
  EXPECT_THAT(RefusalOf(Footer(0)).what, HasSubstr("begins with"));
  EXPECT_THAT(RefusalOf("{\"shardproof_trace\":2,\"rank\":0,\"world\":1}\n").what,
              HasSubstr("version 2"));
  EXPECT_THAT(RefusalOf("{\"shardproof_trace\":1,\"rank\":1,\"world\":1}\n").what,
              HasSubstr("\"rank\""));
  EXPECT_THAT(RefusalOf("{\"shardproof_trace\":1,\"rank\":1}\n").what, HasSubstr("\"world\""));
  EXPECT_THAT(
      RefusalOf("{\"shardproof_trace\":1,\"rank\":0,\"world\":1,\"provides\":[\"luck\"]}\n").what,
      HasSubstr("luck"));
}

TEST(Refused, GroupsThatCannotBe) {
  EXPECT_THAT(RefusalOf(kHeader + "{\"group\":1,\"comm\":\"a\",\"ranks\":[0]}\n").what,
              HasSubstr("group 0 is due"));
  EXPECT_THAT(RefusalOf(kHeader + "{\"group\":0,\"comm\":\"a\",\"ranks\":[2]}\n").what,
              HasSubstr("not within 0..1"));
  EXPECT_THAT(RefusalOf(kHeader + "{\"group\":0,\"comm\":\"a\",\"ranks\":[1,1]}\n").what,
              HasSubstr("twice"));
  EXPECT_THAT(RefusalOf(kHeader + "{\"group\":0,\"ranks\":[1]}\n").what,
              HasSubstr("needs \"comm\""));
}

TEST(Refused, EveryPrefixOfATrace) {
  TraceBuilder t(0, 2);
  const int group = t.Group("dp_cp", {0, 1});
  const int stream = t.Stream("compute");
  const int block = t.Alloc(stream, 64);
  t.Collective(SPF_ALL_REDUCE, group, stream, 4, {Updates(block, 0, 16)});
  t.Publish(stream, SPF_RESULT_LOSS, 0, 0, 1, SPF_F32, 77, Reads(block, 0, 4), {1.5});
  const std::string text = TraceToText(t.Done());
  const auto lines = [](const std::string& part) {
    return std::count(part.begin(), part.end(), '\n') + 1;
  };
  for (size_t length = 0; length + 2 <= text.size();
       ++length) {  // without the last newline it is still complete
    const std::string part = text.substr(0, length);
    const Refusal refusal = RefusalOf(part);
    EXPECT_GE(refusal.line, lines(part)) << "accepted or blamed on an earlier line: " << part;
    EXPECT_LE(refusal.line, lines(part) + 1) << part;
  }
  EXPECT_EQ(RefusalOf(text).what, "");
}

TEST(Refused, EveryLineOfATraceLeftOut) {
  TraceBuilder t(0, 2);
  const int stream = t.Stream("compute");
  for (int i = 0; i < 5; ++i) t.Record(t.EventCreate(), stream);
  std::istringstream in(TraceToText(t.Done()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
  for (size_t left_out = 0; left_out < lines.size(); ++left_out) {
    if (lines[left_out].starts_with("{\"stream\"")) continue;  // the creation defines it too
    std::string text;
    for (size_t i = 0; i < lines.size(); ++i) text += i == left_out ? "" : lines[i];
    EXPECT_NE(RefusalOf(text).what, "") << "without " << lines[left_out];
  }
}

class Folder : public testing::Test {
 protected:
  Folder() : path_(std::filesystem::path(testing::TempDir()) / "reader_test_folder") {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  void Put(const std::string& name, int rank, int world, const std::string& case_id = "c") {
    std::ofstream(path_ / name) << TraceToText(TraceBuilder(rank, world, case_id).Done());
  }
  std::string Refusal() {
    try {
      ReadTraceFolder(path_);
    } catch (const TraceError& error) {
      return error.what();
    }
    return "";
  }
  std::filesystem::path path_;
};

TEST_F(Folder, OtherFilesAreIgnored) {
  Put("trace.00000.jsonl", 0, 1);
  Put("trace.1.jsonl", 1, 1);
  Put("results.jsonl", 0, 1);
  EXPECT_EQ(Refusal(), "");
}

TEST_F(Folder, OfFoldersHoldsTheirRuns) {
  const auto below = [this](const char* name) { return path_ / name; };
  for (const char* name : {"b", "a", "empty"}) std::filesystem::create_directories(below(name));
  for (const char* name : {"b", "a"}) Put(std::string(name) + "/trace.00000.jsonl", 0, 1);
  EXPECT_EQ(RunsIn(path_), (std::vector<std::filesystem::path>{below("a"), below("b")}));
  EXPECT_EQ(RunsIn(below("a")), std::vector<std::filesystem::path>{below("a")});
  EXPECT_EQ(RunsIn(below("empty")), std::vector<std::filesystem::path>{below("empty")});
  EXPECT_EQ(RunsIn(below("none")), std::vector<std::filesystem::path>{below("none")});
  Put("trace.00000.jsonl", 0, 1);
  EXPECT_EQ(RunsIn(path_), std::vector<std::filesystem::path>{path_}) << "its own traces first";
}

TEST_F(Folder, WithoutTracesIsRefused) { EXPECT_THAT(Refusal(), HasSubstr("no trace in it")); }

TEST_F(Folder, ThatDoesNotExistIsRefused) {
  path_ /= "nowhere";
  EXPECT_THAT(Refusal(), HasSubstr("cannot be read"));
}

TEST_F(Folder, AMissingRankIsRefused) {
  Put("trace.00000.jsonl", 0, 3);
  Put("trace.00002.jsonl", 2, 3);
  EXPECT_THAT(Refusal(), HasSubstr("rank 1 is missing"));
}

TEST_F(Folder, AMissingLastRankIsRefused) {
  Put("trace.00000.jsonl", 0, 2);
  EXPECT_THAT(Refusal(), HasSubstr("rank 1 of 2 is missing"));
}

TEST_F(Folder, TooManyRanksAreRefused) {
  Put("trace.00000.jsonl", 0, 1);
  Put("trace.00001.jsonl", 1, 2);
  EXPECT_THAT(Refusal(), HasSubstr("mixed"));
}

TEST_F(Folder, AMixOfCasesIsRefused) {
  Put("trace.00000.jsonl", 0, 2, "one");
  Put("trace.00001.jsonl", 1, 2, "other");
  EXPECT_THAT(Refusal(), HasSubstr("case \"other\", but rank 0's is \"one\""));
}

TEST_F(Folder, AFileUnderAnotherRanksNameIsRefused) {
  Put("trace.00000.jsonl", 0, 2);
  Put("trace.00001.jsonl", 0, 2);
  EXPECT_THAT(Refusal(), HasSubstr("the header says rank 0, the file's name rank 1"));
}

}  // namespace
}  // namespace shardproof
