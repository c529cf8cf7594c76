// What is written is read back, field by field, for random traces of every kind of event.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <sstream>

#include "conformance/common/at.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/trace_builder.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

// Random traces in the layout that the recorder makes: pools in the order of the events.
class RandomTrace {
 public:
  explicit RandomTrace(uint64_t seed) : random_(seed) {}

  Trace Make() {
    trace_.world = static_cast<int32_t>(Up(7) + 1);
    trace_.rank = static_cast<int32_t>(Up(static_cast<uint64_t>(trace_.world - 1)));
    trace_.case_id = Text();
    for (bool Provides::*field :
         {&Provides::groups, &Provides::sync, &Provides::digests, &Provides::calls}) {
      trace_.provides.*field = Coin();
    }
    trace_.end = static_cast<TraceEnd>(Up(2));
    trace_.end_reason = Coin() ? Text() : "";
    for (uint64_t i = Up(3) + 1; i > 0; --i) AddGroup();
    for (uint64_t i = Up(3) + 1; i > 0; --i) trace_.streams.push_back(Text());
    for (uint64_t i = Up(200); i > 0; --i) AddEvent();
    if (!open_.empty() && trace_.end == TraceEnd::kComplete) trace_.end = TraceEnd::kDied;
    return trace_;
  }

 private:
  uint64_t Up(uint64_t most) { return std::uniform_int_distribution<uint64_t>(0, most)(random_); }
  bool Coin() { return Up(1) == 1; }
  int32_t Id() { return static_cast<int32_t>(Coin() ? Up(9) : Up((1 << 24) - 1)); }
  int32_t IdOrNone() { return Coin() ? Id() : -1; }
  int64_t Wide() { return std::bit_cast<int64_t>(random_()) >> Up(63); }
  // Bytes and elements: up to 2^40.
  int64_t Size() { return Wide() & ((int64_t{1} << 40) - 1); }
  double Value() {
    switch (Up(7)) {
      case 0:
        return std::bit_cast<double>(random_());
      case 1:
        return -0.;
      case 2:
        return std::numeric_limits<double>::infinity();
      case 3:
        return -std::numeric_limits<double>::infinity();
      case 4:
        return std::numeric_limits<double>::quiet_NaN();
      case 5:
        return std::numeric_limits<double>::denorm_min();
      case 6:
        return static_cast<double>(
            static_cast<float>(std::bit_cast<int32_t>(static_cast<uint32_t>(random_()))));
      default:
        return static_cast<double>(Up(100)) / 8;
    }
  }
  std::string Text() {
    static const std::string kTexts[] = {
        "", "a", "dp_cp", "quote \" and \\ and \n\t\x01", "größer \xF0\x9F\x98\x80", "{\"e\":1}"};
    return kTexts[Up(5)];
  }
  int32_t Intern(const std::string& text) {
    for (size_t i = 0; i < trace_.strings.size(); ++i) {
      if (trace_.strings[i] == text) return static_cast<int32_t>(i);
    }
    trace_.strings.push_back(text);
    return static_cast<int32_t>(trace_.strings.size() - 1);
  }
  void AddGroup() {
    GroupInfo group;
    group.comm = "comm " + Text();
    group.name = Text();
    group.instance = static_cast<int32_t>(Up(3));
    for (int32_t i = trace_.world - 1; i >= 0; --i) {
      if (i == trace_.rank || Coin()) group.world_ranks.push_back(i);
    }
    trace_.groups.push_back(group);
  }
  Slice Numbers(uint64_t most, uint64_t count) {
    if (count == 0) return {};
    const auto begin = static_cast<uint32_t>(trace_.numbers.size());
    for (uint64_t i = 0; i < count; ++i) trace_.numbers.push_back(static_cast<int64_t>(Up(most)));
    return {begin, static_cast<uint32_t>(trace_.numbers.size())};
  }
  Slice Ranges() {
    if (Coin()) return {};
    const auto begin = static_cast<uint32_t>(trace_.ranges.size());
    for (uint64_t i = Up(3) + 1; i > 0; --i) {
      trace_.ranges.push_back({Id(), static_cast<uint8_t>(Up(3)), Size(), Size()});
    }
    return {begin, static_cast<uint32_t>(trace_.ranges.size())};
  }
  int64_t Values(int64_t count) {
    const auto begin = static_cast<int64_t>(trace_.values.size());
    for (int64_t i = 0; i < count; ++i) trace_.values.push_back(Value());
    return begin;
  }
  Slice ReadList() {
    if (Coin()) return {};
    const auto begin = static_cast<uint32_t>(trace_.reads.size());
    for (uint64_t i = Up(3) + 1; i > 0; --i) {
      ParamRead read{Id(), random_(), -1, Size()};
      if (Coin()) {
        read.count = static_cast<int64_t>(Up(5));
        read.values = Values(read.count);
      }
      trace_.reads.push_back(read);
    }
    return {begin, static_cast<uint32_t>(trace_.reads.size())};
  }

  // What the reader asks of rows beyond their keys (row_rules.h).
  void MakeMeaning(Event& e, size_t members) {
    const bool exchange = e.collective == SPF_ALL_TO_ALL_V;
    e.send_counts = Numbers(1u << 30, exchange || Coin() ? members : 0);
    const bool counted = exchange || e.collective == SPF_ALL_GATHER_V;
    e.recv_counts = Numbers(1u << 30, counted || Coin() ? members : 0);
    if (e.peer < 0) e.peer = 0;
    if (e.kind == EventKind::kCollective) {
      if (!e.ranges.empty() && e.collective == 102) e.collective = 101;  // a barrier has none
      if (e.request >= 0) e.stream = -1;
      if (e.request >= 0) started_.push_back(e.request);
    }
    if (e.kind == EventKind::kCallBegin) e.call = -1;
    MakeHandOver(e);
    if (e.kind == EventKind::kGroupEnd && !open_.empty()) {
      e.thread = open_.back();
      open_.pop_back();
    } else if (e.kind == EventKind::kGroupEnd) {
      e.kind = EventKind::kDeviceSync;
    }
    if (e.kind == EventKind::kGroupBegin) open_.push_back(e.thread);
  }

  // Waits and awaits of what was started and posted; if nothing was, something else.
  void MakeHandOver(Event& e) {
    const auto most = [](const auto n) { return static_cast<uint64_t>(n) - 1; };
    if (e.kind == EventKind::kThreadPost) e.id = posts_++;
    if (e.kind == EventKind::kRequestWait) {
      if (started_.empty()) e.kind = EventKind::kDeviceSync;
      if (!started_.empty()) e.id = started_[Up(most(started_.size()))];
    }
    if (e.kind == EventKind::kThreadAwait) {
      if (posts_ == 0) e.kind = EventKind::kDeviceSync;
      if (posts_ > 0) e.id = static_cast<int32_t>(Up(most(posts_)));
    }
  }

  void AddEvent() {
    Event e;
    e.kind = static_cast<EventKind>(Up(static_cast<uint64_t>(EventKind::kCount_) - 1));
    const uint64_t op = Up(11);
    e.collective = static_cast<uint8_t>(op < 8 ? op + 1 : op + 93);
    e.dtype = static_cast<uint8_t>(Up(6) + 1);
    e.reduction = static_cast<uint8_t>(Up(3));
    e.phase = static_cast<uint8_t>(Up(5));
    e.result = static_cast<uint8_t>(Up(7));
    e.status = static_cast<uint8_t>(Up(8));
    e.flag = Coin();
    e.thread = static_cast<uint16_t>(Up(65535));
    e.instance = static_cast<uint16_t>(Up(3));
    e.call = IdOrNone();
    e.stream = static_cast<int32_t>(Up(trace_.streams.size() - 1));
    e.event = Id();
    e.group = static_cast<int32_t>(Up(trace_.groups.size() - 1));
    e.parent = static_cast<int32_t>(Up(trace_.groups.size() - 1));
    e.alloc = Id();
    const auto members = [&](int32_t group) { return At(trace_.groups, group).world_ranks.size(); };
    e.peer = static_cast<int32_t>(Up(members(e.group))) - 1;
    e.id = static_cast<int32_t>(Wide() >> 32);
    if (e.id == -1) e.id = 0;
    e.request = IdOrNone();
    e.purpose = static_cast<int32_t>(Up(20));
    e.module = IdOrNone();
    e.microbatch = IdOrNone();
    e.sample = Wide();
    e.offset = Size();
    e.digest = random_();
    // Kinds that need a key have it; the writer leaves defaults out.
    if (e.result == 0) e.result = 1;
    e.text = Intern(Text());
    if (Coin()) e.text2 = Intern(Text());
    e.ranges = Ranges();
    e.reads = ReadList();
    e.ranks = Numbers(members(e.parent) - 1, Up(5));
    MakeMeaning(e, members(e.group));
    e.count = Size() | 1;
    if (Coin()) {
      e.count = static_cast<int64_t>(Up(4)) + 1;
      e.values = Values(e.count);
    }
    trace_.events.push_back(e);
  }

  std::mt19937_64 random_;
  Trace trace_;
  std::vector<int32_t> started_;  // requests
  int32_t posts_ = 0;
  std::vector<uint16_t> open_;  // threads with an open group, once for each
};

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
