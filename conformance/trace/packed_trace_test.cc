// A packed trace is what its text is: what one reader refuses, the other does.
#include "conformance/trace/packed_trace.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "conformance/trace/packed_fields.h"
#include "conformance/trace/random_trace.h"
#include "conformance/trace/trace_builder.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

// As text; nothing: it was refused.
std::optional<std::string> TextUnlessRefused(const std::function<Trace()>& read) {
  try {
    return TraceToText(read());
  } catch (const TraceError&) {
  } catch (const std::invalid_argument&) {  // by the writer
  }
  return std::nullopt;
}

std::optional<std::string> ByText(const Trace& trace) {
  return TextUnlessRefused([&] { return ReadTrace(TraceToText(trace), "text"); });
}
std::optional<std::string> Packed(const Trace& trace) {
  return TextUnlessRefused([&] { return UnpackTrace(PackTrace(trace), "packed"); });
}

TEST(PackedTrace, RandomTracesComeBack) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Trace trace = RandomTrace(seed).Make();
    const std::string bytes = PackTrace(trace);
    const Trace back = UnpackTrace(bytes, "packed");
    ASSERT_EQ(TraceToText(back), TraceToText(trace));
    ASSERT_EQ(PackTrace(back), bytes);
  }
}

// Every number of every kind of event, at and beyond the limits.
TEST(PackedTrace, IsRefusedWhereItsTextIs) {
  std::mt19937_64 random(1);
  const auto up = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int refused = 0, accepted = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Trace trace = RandomTrace(seed % 50).Make();
    if (trace.events.empty()) continue;
    Event& event = trace.events[up(trace.events.size())];
    const size_t chosen = up(23);
    size_t at = 0;
    ForEachNumber(event, [&](uint64_t, auto& field, int64_t absent, int64_t least, int64_t most) {
      if (at++ != chosen) return;
      const int64_t values[] = {absent, least, least - 1, most, most + 1, 0, 1, -1, 7, 104, 105};
      field = static_cast<std::remove_reference_t<decltype(field)>>(values[up(11)]);
    });
    const size_t other = up(8);
    if (other == 0 && !trace.ranges.empty())
      trace.ranges[up(trace.ranges.size())] = {-1, 4, -1, int64_t{1} << 41};
    if (other == 1 && !trace.ranges.empty()) trace.ranges[up(trace.ranges.size())].alloc = -1;
    if (other == 2 && !trace.reads.empty()) trace.reads[up(trace.reads.size())].param = -1;
    if (other == 3 && !trace.numbers.empty()) trace.numbers[up(trace.numbers.size())] = -1;
    if (other == 4) trace.groups[0].world_ranks.push_back(trace.rank);
    if (other == 5)
      event.kind = static_cast<EventKind>(up(static_cast<size_t>(EventKind::kCount_)));
    const std::optional<std::string> text = ByText(trace);
    ASSERT_EQ(Packed(trace), text);
    (text ? accepted : refused) += 1;
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 100);
}

TEST(PackedTrace, AnyBytesAreATraceOrRefused) {
  std::mt19937_64 random(1);
  int refused = 0, accepted = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    std::string bytes = PackTrace(RandomTrace(seed % 50).Make());
    bytes[random() % bytes.size()] = static_cast<char>(random());
    if (seed % 5 == 0) bytes.resize(random() % bytes.size());
    const auto back = TextUnlessRefused([&] { return UnpackTrace(bytes, "changed"); });
    if (back) {
      ASSERT_EQ(TextUnlessRefused([&] { return ReadTrace(*back, "changed"); }), back);
    }
    (back ? accepted : refused) += 1;
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 100);
}

TEST(PackedTrace, ARefusalNamesTheEvent) {
  TraceBuilder t(0, 1);
  const int stream = t.Stream("compute");
  t.StreamSync(stream);
  t.Last().stream = 7;
  try {
    UnpackTrace(PackTrace(t.Done()), "trace of a rank");
    FAIL();
  } catch (const TraceError& error) {
    EXPECT_EQ(std::string(error.what()),
              "trace of a rank: event 1: stream 7 is not defined: a line {\"stream\":..} or a "
              "stream_create event must come first");
  }
}

std::string Refusal(std::string_view bytes) {
  try {
    UnpackTraceFile(bytes, "file");
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

TEST(PackedTrace, AFileOfAnotherVersionIsRefused) {
  const Trace trace = RandomTrace(1).Make();
  std::string file = PackTraceFile(trace);
  EXPECT_EQ(TraceToText(UnpackTraceFile(file, "file")), TraceToText(trace));
  const std::string told =
      "file: no packed trace, or one of another version of the suite: pack the text anew "
      "(shardproof trace convert)";
  EXPECT_EQ(Refusal(PackTrace(trace)), told);
  EXPECT_EQ(Refusal(""), told);
  char& digit = file[file.find('\n') - 1];
  digit = digit == '0' ? '1' : '0';
  EXPECT_EQ(Refusal(file), told);
}

TEST(PackedTrace, AnIndexOutsideTheTablesIsNotPacked) {
  TraceBuilder t(0, 1);
  t.Explain("x");
  t.Last().text = 5;
  EXPECT_THROW(PackTrace(t.Done()), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
