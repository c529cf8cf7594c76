#include "conformance/report/html/memory_curve.h"

#include <algorithm>
#include <array>
#include <map>

#include "conformance/trace/names.h"

namespace shardproof {
namespace {

constexpr size_t kPurposes = trace_names::kPurposes.size();
using Amounts = std::array<int64_t, kPurposes>;

constexpr int64_t kMost = int64_t{1} << 62;

int64_t Sum(const Amounts& amounts) {
  int64_t sum = 0;
  for (const int64_t amount : amounts) sum = std::min(kMost, sum + std::min(kMost - sum, amount));
  return sum;
}

// What is held after each event.
class Held {
 public:
  void Step(const Event& event) {
    if (event.kind == EventKind::kAlloc && event.id != SPF_PINNED) {
      const auto purpose = static_cast<size_t>(event.purpose);
      Block block = {purpose < kPurposes ? purpose : 0, std::max<int64_t>(0, event.count)};
      int64_t& now = now_[block.purpose];
      block.bytes = std::min(block.bytes, kMost - now);
      if (blocks_.emplace(event.alloc, block).second) now += block.bytes;
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
  static constexpr std::array<std::string_view, 11> kThem = {"BU-01", "BU-02", "EP-08", "EP-17",
                                                             "FS-03", "FS-09", "FS-13", "FS-31",
                                                             "FS-32", "FS-33", "KN-13"};
  return std::find(kThem.begin(), kThem.end(), requirement) != kThem.end();
}

MemoryCurve MemoryOf(const Trace& trace, int64_t finding) {
  MemoryCurve curve;
  curve.rank = trace.rank;
  curve.events = static_cast<int64_t>(trace.events.size());
  curve.finding = finding;
  const size_t events = trace.events.size(), columns = std::min(events, kMemoryColumns);
  std::vector<Amounts> most(columns);
  Held held;
  Amounts peaks{}, at_peak{}, at_finding{};
  for (size_t i = 0; i < events; ++i) {
    const bool first = i == 0 || i * columns / events != (i - 1) * columns / events;
    held.Step(trace.events[i]);
    const Amounts& now = held.now();
    Amounts& column = most[i * columns / events];
    const int64_t bytes = Sum(now);
    if (first || bytes > Sum(column)) column = now;
    for (size_t p = 0; p < kPurposes; ++p) peaks[p] = std::max(peaks[p], now[p]);
    if (static_cast<int64_t>(i) == finding) at_finding = now;
    if (bytes <= curve.peak_bytes) continue;
    curve.peak_bytes = bytes;
    curve.peak = static_cast<int64_t>(i);
    at_peak = now;
  }
  std::vector<size_t> order;
  for (size_t p = 0; p < kPurposes; ++p)
    if (peaks[p] > 0) order.push_back(p);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return peaks[a] > peaks[b]; });
  for (const size_t p : order) {
    MemoryCurve::Purpose& purpose = curve.purposes.emplace_back();
    purpose.name = trace_names::kPurposes[p];
    for (const Amounts& column : most) purpose.bytes.push_back(column[p]);
    curve.at_peak.push_back(at_peak[p]);
    if (finding >= 0 && finding < curve.events) curve.at_finding.push_back(at_finding[p]);
  }
  return curve;
}

}  // namespace shardproof
