#include "conformance/report/html/memory_curve.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "conformance/trace/names.h"

namespace shardproof {
namespace {

constexpr size_t kPurposes = trace_names::kPurposes.size();
using Amounts = std::array<int64_t, kPurposes>;

int64_t Sum(const Amounts& amounts) {
  return std::accumulate(amounts.begin(), amounts.end(), int64_t{0});
}

// What is held after each event.
class Held {
 public:
  void Step(const Event& event) {
    if (event.kind == EventKind::kAlloc && event.id != SPF_PINNED) {
      const auto purpose = static_cast<size_t>(event.purpose);
      const Block block = {purpose < kPurposes ? purpose : 0, std::max<int64_t>(0, event.count)};
      if (blocks_.emplace(event.alloc, block).second) now_[block.purpose] += block.bytes;
    } else if (GivesBack(event.kind)) {
      const auto block = blocks_.find(event.alloc);
      if (block == blocks_.end()) return;
      now_[block->second.purpose] -= block->second.bytes;
      blocks_.erase(block);
    }
  }
  const Amounts& now() const { return now_; }

 private:
  struct Block {
    size_t purpose = 0;
    int64_t bytes = 0;
  };
  std::map<int64_t, Block> blocks_;
  Amounts now_{};
};

}  // namespace

bool BoundsMemory(std::string_view requirement) {
  static constexpr std::array<std::string_view, 10> kOthers = {
      "EP-08", "EP-17", "FS-03", "FS-09", "FS-13", "FS-31", "FS-32", "FS-33", "GE-40", "KN-13"};
  return requirement.starts_with("BU-") ||
         std::find(kOthers.begin(), kOthers.end(), requirement) != kOthers.end();
}

MemoryCurve MemoryOf(const Trace& trace, int64_t finding) {
  MemoryCurve curve;
  curve.rank = trace.rank;
  curve.events = static_cast<int64_t>(trace.events.size());
  curve.finding = finding;
  const size_t events = trace.events.size(), columns = std::min(events, kMemoryColumns);
  std::vector<Amounts> most(columns);
  Held held;
  Amounts peaks{};
  for (size_t i = 0; i < events; ++i) {
    const bool first = i == 0 || i * columns / events != (i - 1) * columns / events;
    held.Step(trace.events[i]);
    Amounts& column = most[i * columns / events];
    const int64_t bytes = Sum(held.now());
    if (first || bytes > Sum(column)) column = held.now();
    if (bytes > curve.peak_bytes) {
      curve.peak_bytes = bytes;
      curve.peak = static_cast<int64_t>(i);
    }
  }
  for (const Amounts& column : most)
    for (size_t p = 0; p < kPurposes; ++p) peaks[p] = std::max(peaks[p], column[p]);
  for (size_t p = 0; p < kPurposes; ++p) {
    if (peaks[p] == 0) continue;
    MemoryCurve::Purpose& purpose = curve.purposes.emplace_back(
        MemoryCurve::Purpose{std::string(trace_names::kPurposes[p]), {}});
    for (const Amounts& column : most) purpose.bytes.push_back(column[p]);
  }
  std::stable_sort(curve.purposes.begin(), curve.purposes.end(), [](const auto& a, const auto& b) {
    const auto peak = [](const MemoryCurve::Purpose& purpose) {
      return *std::max_element(purpose.bytes.begin(), purpose.bytes.end());
    };
    return peak(a) > peak(b);
  });
  return curve;
}

}  // namespace shardproof
