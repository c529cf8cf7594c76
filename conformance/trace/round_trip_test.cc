// What is written is read back, field by field, for random traces of every kind of event.
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <sstream>

#include "conformance/trace/random_trace.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/trace_builder.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

void ExpectSame(Slice a, Slice b) {
  EXPECT_EQ(a.begin, b.begin);
  EXPECT_EQ(a.end, b.end);
}

void ExpectSame(const Event& a, const Event& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.collective, b.collective);
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.reduction, b.reduction);
  EXPECT_EQ(a.phase, b.phase);
  EXPECT_EQ(a.result, b.result);
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.flag, b.flag);
  EXPECT_EQ(a.thread, b.thread);
  EXPECT_EQ(a.instance, b.instance);
  EXPECT_EQ(a.call, b.call);
  EXPECT_EQ(a.stream, b.stream);
  EXPECT_EQ(a.event, b.event);
  EXPECT_EQ(a.group, b.group);
  EXPECT_EQ(a.parent, b.parent);
  EXPECT_EQ(a.alloc, b.alloc);
  EXPECT_EQ(a.peer, b.peer);
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.request, b.request);
  EXPECT_EQ(a.purpose, b.purpose);
  EXPECT_EQ(a.module, b.module);
  EXPECT_EQ(a.microbatch, b.microbatch);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.text2, b.text2);
  EXPECT_EQ(a.place, b.place);
  EXPECT_EQ(a.sample, b.sample);
  EXPECT_EQ(a.offset, b.offset);
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_EQ(a.values, b.values);
  ExpectSame(a.ranges, b.ranges);
  ExpectSame(a.reads, b.reads);
  ExpectSame(a.ranks, b.ranks);
  ExpectSame(a.send_counts, b.send_counts);
  ExpectSame(a.recv_counts, b.recv_counts);
}

void ExpectSame(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.rank, b.rank);
  EXPECT_EQ(a.world, b.world);
  EXPECT_EQ(a.case_id, b.case_id);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.end_reason, b.end_reason);
  EXPECT_EQ(a.bounded_updates, b.bounded_updates);
  for (bool Provides::*field : {&Provides::groups, &Provides::collectives, &Provides::sync,
                                &Provides::memory, &Provides::work, &Provides::digests,
                                &Provides::results, &Provides::marks, &Provides::calls}) {
    EXPECT_EQ(a.provides.*field, b.provides.*field);
  }
  ASSERT_EQ(a.groups.size(), b.groups.size());
  for (size_t i = 0; i < a.groups.size(); ++i) {
    EXPECT_EQ(a.groups[i].comm, b.groups[i].comm);
    EXPECT_EQ(a.groups[i].name, b.groups[i].name);
    EXPECT_EQ(a.groups[i].instance, b.groups[i].instance);
    EXPECT_EQ(a.groups[i].world_ranks, b.groups[i].world_ranks);
  }
  EXPECT_EQ(a.streams, b.streams);
  EXPECT_EQ(a.strings, b.strings);
  EXPECT_EQ(a.numbers, b.numbers);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (size_t i = 0; i < a.events.size(); ++i) ExpectSame(a.events[i], b.events[i]);
  ASSERT_EQ(a.ranges.size(), b.ranges.size());
  for (size_t i = 0; i < a.ranges.size(); ++i) {
    EXPECT_EQ(a.ranges[i].alloc, b.ranges[i].alloc);
    EXPECT_EQ(a.ranges[i].access, b.ranges[i].access);
    EXPECT_EQ(a.ranges[i].offset, b.ranges[i].offset);
    EXPECT_EQ(a.ranges[i].length, b.ranges[i].length);
  }
  ASSERT_EQ(a.reads.size(), b.reads.size());
  for (size_t i = 0; i < a.reads.size(); ++i) {
    EXPECT_EQ(a.reads[i].param, b.reads[i].param);
    EXPECT_EQ(a.reads[i].digest, b.reads[i].digest);
    EXPECT_EQ(a.reads[i].values, b.reads[i].values);
    EXPECT_EQ(a.reads[i].count, b.reads[i].count);
  }
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(a.values[i]), std::bit_cast<uint64_t>(b.values[i]))
        << a.values[i];
  }
}

TEST(RoundTrip, RandomTracesComeBackFieldByField) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Trace trace = RandomTrace(seed).Make();
    const std::string text = TraceToText(trace);
    const Trace back = ReadTrace(text, "random");
    ExpectSame(trace, back);
    EXPECT_EQ(TraceToText(back), text);
    if (HasFailure()) return;
  }
}

TEST(RoundTrip, AStreamGetsTheSameBytesAsAString) {
  const Trace trace = RandomTrace(7).Make();
  std::ostringstream out;
  WriteTrace(trace, out);
  EXPECT_EQ(out.str(), TraceToText(trace));
}

TEST(RoundTrip, TextThatIsNoUtf8IsStillReadable) {
  TraceBuilder t(0, 1);
  t.Explain("bad \xFF\xC3( end");
  const Trace back = ReadTrace(TraceToText(t.Done()), "utf8");
  EXPECT_EQ(back.Text(back.events[0].text), "bad \xEF\xBF\xBD\xEF\xBF\xBD( end");
}

TEST(RoundTrip, AFolderComesBackByRank) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "round_trip_folder";
  std::vector<Trace> traces;
  for (int rank = 0; rank < 3; ++rank) {
    TraceBuilder t(rank, 3);
    t.Explain("I am " + std::to_string(rank));
    traces.push_back(t.Done());
  }
  WriteTraceFolder(traces, folder);
  const std::vector<Trace> back = ReadTraceFolder(folder);
  ASSERT_EQ(back.size(), 3u);
  for (size_t rank = 0; rank < 3; ++rank) ExpectSame(traces[rank], back[rank]);
  // A smaller world takes the place of the larger one.
  WriteTraceFolder({TraceBuilder(0, 1).Done()}, folder);
  EXPECT_EQ(ReadTraceFolder(folder).size(), 1u);
}

TEST(RoundTrip, AFolderHasANameThatFileSystemsTake) {
  const std::string most(255, 'x');
  EXPECT_EQ(TraceFolderName("w2.zero3"), "w2.zero3");
  EXPECT_EQ(TraceFolderName(most), most);
  const std::string one = TraceFolderName(most + "1"), other = TraceFolderName(most + "2");
  EXPECT_NE(one, other);
  EXPECT_EQ(one.substr(0, 201), std::string(200, 'x') + "~");
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / one;
  WriteTraceFolder({TraceBuilder(0, 1).Done()}, folder);
  EXPECT_EQ(ReadTraceFolder(folder).size(), 1u);
}

TEST(RoundTrip, RegistrationsComeBack) {
  TraceBuilder t(0, 2);
  const int group = t.Group("dp_cp", {0, 1}), stream = t.Stream("comm");
  const int block = t.Alloc(stream, 4096, {}, SPF_REGISTRABLE);
  t.GroupRegister(group, block);
  t.GroupDeregister(group, block);
  const Trace trace = t.Done();
  const std::string text = TraceToText(trace);
  EXPECT_NE(text.find("{\"i\":2,\"e\":\"group_register\",\"g\":0,\"a\":0,\"k\":4096}"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("{\"i\":3,\"e\":\"group_deregister\",\"g\":0,\"a\":0}"), std::string::npos)
      << text;
  ExpectSame(trace, ReadTrace(text, "written"));
}

TEST(Writer, AnIndexOutsideTheTablesIsRefused) {
  TraceBuilder t(0, 1);
  t.Explain("x");
  t.Last().text = 5;
  EXPECT_THROW(TraceToText(t.Done()), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
