// What a finding says of accesses to a gather's bytes that nothing orders with it.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/checks/layer_wise/mini_checked.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;

Finding FirstOf(const CheckResult& result, const std::string& requirement) {
  for (const Finding& finding : result.findings) {
    if (finding.requirement == requirement) return finding;
  }
  ADD_FAILURE() << "no finding of " << requirement;
  return {};
}

TEST(LayerWiseRaces, AUseBeforeTheWaitNamesBothAndWhoDoesNotWait) {
  const Finding finding = FirstOf(Checked(kOverlap, FAULT(no_wait)), "LW-17");
  EXPECT_LT(finding.begins, finding.event) << "both events, for replay";
  EXPECT_THAT(finding.message, HasSubstr("is used before the gather is waited for: all_gather_v"));
  EXPECT_THAT(finding.message, HasSubstr("(event " + std::to_string(finding.begins) + ")"));
  EXPECT_THAT(finding.message, HasSubstr("(event " + std::to_string(finding.event) + ")"));
  EXPECT_THAT(finding.message, HasSubstr(" does not wait for the former: bytes ["));
  EXPECT_THAT(finding.message, HasSubstr("Record an event after the former and let stream "));
  EXPECT_TRUE(finding.expected.starts_with("ordered after all_gather_v")) << finding.expected;
  EXPECT_EQ(finding.seen, "no order");
}

// Rank 0's trace, to be changed.
class Shared {
 public:
  Shared() : made_(RunLayerWise(LayerWiseCase(2, kOverlap + kSmallBuckets))) {}

  std::vector<Event>& events() { return made_.run.traces[0].events; }
  CheckResult Check() { return Shown(CheckLayerWise(Analysis(made_.run))); }

  // The second copy that installs what came in a buffer, and the buffer.
  size_t Install() {
    int seen = 0;
    const auto at = std::find_if(events().begin(), events().end(), [&](const Event& event) {
      return event.call == 2 && event.kind == EventKind::kCopy && event.stream == 0 && ++seen == 2;
    });
    return static_cast<size_t>(at - events().begin());
  }
  int32_t Buffer(const Event& install) { return RangesOf(install)[0].alloc; }
  bool IsGather(size_t i) { return events()[i].kind == EventKind::kCollective; }
  void Move(const Event& gather, int32_t buffer) {
    for (uint32_t k = gather.ranges.begin; k < gather.ranges.end; ++k)
      made_.run.traces[0].ranges[k].alloc = buffer;
  }

 private:
  Range* RangesOf(const Event& event) { return &made_.run.traces[0].ranges[event.ranges.begin]; }

  LayerWiseRun made_;
};

// The engine has waited for the gather whose bytes it reads: not that is missing.
TEST(LayerWiseRaces, AGatherIntoABufferThatIsStillToBeRead) {
  Shared shared;
  const size_t install = shared.Install();
  size_t next = install;
  while (!shared.IsGather(next)) --next;
  size_t earlier = next - 1;
  while (!shared.IsGather(earlier)) --earlier;
  shared.Move(shared.events()[next], shared.Buffer(shared.events()[install]));
  const Finding finding = FirstOf(shared.Check(), "LW-17");
  EXPECT_EQ(finding.event, static_cast<int64_t>(install));
  EXPECT_EQ(finding.begins, static_cast<int64_t>(next));
  EXPECT_THAT(finding.message, HasSubstr("a gather starts before what an earlier one brought is "
                                         "read: copy (stream "));
  EXPECT_THAT(finding.message,
              HasSubstr("waits for the gather of event " + std::to_string(earlier) + ", and "));
  EXPECT_THAT(finding.message, HasSubstr("Issue the later gather behind what reads the buffer"));
}

TEST(LayerWiseRaces, AGatherThatDoesNotWaitForTheReader) {
  Shared shared;
  const size_t install = shared.Install();
  const int32_t buffer = shared.Buffer(shared.events()[install]);
  size_t next = install;
  while (!shared.IsGather(next)) ++next;
  shared.Move(shared.events()[next], buffer);
  size_t place = 0;
  std::erase_if(shared.events(), [&](const Event& event) {
    const size_t i = place++;
    return i > install && i < next && (event.kind == EventKind::kWait || event.alloc == buffer);
  });
  const Finding finding = FirstOf(shared.Check(), "LW-17");
  EXPECT_EQ(finding.begins, static_cast<int64_t>(install));
  EXPECT_THAT(finding.message, HasSubstr("is still in use: copy (stream "));
  EXPECT_THAT(finding.message, HasSubstr(" reads it, all_gather_v"));
}

}  // namespace
}  // namespace shardproof
