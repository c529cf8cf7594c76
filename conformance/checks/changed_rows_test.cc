// Good traces in which one or two rows were changed, lost, doubled or moved by chance: the reader
// refuses them with file and line, or the checks judge them. Nothing throws, nothing hangs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/check_all.h"
#include "conformance/checks/testing/hand_written.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/mini_layer_wise.h"
#include "conformance/checks/testing/mini_schedule.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

using Lines = std::vector<std::string>;

// Without the numbers of events, so that what is lost or moved is noticed by its meaning alone.
Lines LinesOf(const Trace& trace) {
  Lines lines;
  std::istringstream text(TraceToText(trace));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("{\"i\":")) line = "{" + line.substr(line.find(',') + 1);
    lines.push_back(line);
  }
  return lines;
}

// With a footer that counts the events.
std::string TextOf(const Lines& lines) {
  const auto events = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with("{\"e\"");
  });
  std::string text;
  for (const std::string& line : lines) {
    const bool footer = line.starts_with("{\"end\"");
    text += footer ? "{\"end\":" + std::to_string(events) + line.substr(line.find(',')) : line;
    text += "\n";
  }
  return text;
}

class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}
  // 0 to n - 1.
  size_t Of(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  void Change(Lines& lines) {
    const size_t at = Of(lines.size());
    const std::string line = lines[at];
    const auto place = [&](size_t i) { return lines.begin() + static_cast<std::ptrdiff_t>(i); };
    switch (Of(6)) {
      case 0:
        lines.erase(place(at));
        return;
      case 1:
        lines.insert(place(at), line);
        return;
      case 2:
        std::swap(lines[at], lines[std::min(at + 1, lines.size() - 1)]);
        return;
      case 3:
        lines.insert(place(Of(lines.size())), line);
        return;
      default:
        ChangeNumber(lines[at]);
    }
  }

 private:
  void ChangeNumber(std::string& line) {
    std::vector<std::pair<size_t, size_t>> numbers;  // begin, length
    for (size_t i = 1; i < line.size(); ++i) {
      const auto digit = [&](size_t at) { return std::isdigit(line[at]) != 0; };
      if (!digit(i) || std::string(":,[").find(line[i - 1]) == std::string::npos) continue;
      size_t end = i;
      while (digit(end)) ++end;
      if (end - i < 16) numbers.emplace_back(i, end - i);
    }
    if (numbers.empty()) return;
    const auto [begin, length] = numbers[Of(numbers.size())];
    const int64_t old = std::stoll(line.substr(begin, length));
    const std::vector<int64_t> others = {-1,
                                         0,
                                         1,
                                         2,
                                         7,
                                         255,
                                         old - 1,
                                         old + 1,
                                         old * 2,
                                         16777215,
                                         int64_t{1} << 31,
                                         int64_t{1} << 40};
    line.replace(begin, length, std::to_string(others[Of(others.size())]));
  }

  std::mt19937_64 random_;
};

struct Counts {
  int refused = 0, found = 0, other = 0;
};

// So many changes of the run, each on one rank.
Counts ChangeRows(const shardproof::Run& good, uint64_t seeds) {
  Counts counts;
  std::vector<Lines> lines;
  for (const Trace& trace : good.traces) lines.push_back(LinesOf(trace));
  const size_t findings = CheckAll(good).findings.size();
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chance chance(seed);
    const size_t rank = chance.Of(lines.size());
    Lines changed = lines[rank];
    for (uint64_t i = 0; i < 1 + seed % 2; ++i) chance.Change(changed);
    shardproof::Run run = good;
    try {
      run.traces[rank] = ReadTrace(TextOf(changed), "changed");
      if (run.traces[rank].rank != good.traces[rank].rank) continue;  // ReadTraceFolder's to refuse
      (CheckAll(run).findings.size() > findings ? counts.found : counts.other) += 1;
    } catch (const TraceError&) {
      ++counts.refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << TextOf(changed);
    }
  }
  return counts;
}

// Enough of the changes are of each kind, so that the test stays one.
void Expect(const shardproof::Run& good, uint64_t seeds) {
  const Counts counts = ChangeRows(good, seeds);
  EXPECT_GT(counts.refused, static_cast<int>(seeds) / 20);
  EXPECT_GT(counts.found, static_cast<int>(seeds) / 4);
}

TEST(ChangedRows, OfATraceWithoutACase) {
  shardproof::Run run;
  for (int rank = 0; rank < 2; ++rank)
    run.traces.push_back(ReadTrace(HandWrittenTrace(rank), "hand-written"));
  run.outcomes.resize(2);
  Expect(run, 1000);
}

TEST(ChangedRows, OfAFullyShardedEngine) { Expect(RunMini(MiniCase(2)).run, 100); }

TEST(ChangedRows, OfAnEngineWithOuterGroups) {
  const Case c = MiniCase(4, [](InstanceSpec& spec) { spec.outer = 2; });
  Expect(RunMini(c).run, 60);
}

TEST(ChangedRows, OfTheExpertSchedule) { Expect(RunSchedule(ScheduleCase(2, 2)).run, 40); }

TEST(ChangedRows, OfALayerWiseEngine) { Expect(RunLayerWise(LayerWiseCase(2)).run, 60); }

TEST(ChangedRows, OfALayerWiseEngineWithAlignedShards) {
  const Case c = LayerWiseCase(
      2, [](InstanceSpec& spec) { spec.layer_wise.layout = LayerWiseLayout::kAligned; });
  Expect(RunLayerWise(c).run, 60);
}

}  // namespace
}  // namespace shardproof
