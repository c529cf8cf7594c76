// Properties of value digests: they add up over disjoint ranges, and nothing else goes unnoticed.
#include <gtest/gtest.h>

#include <cstring>

#include "conformance/abi/shardproof.h"
#include "conformance/trace/digest.h"
#include "property_tests/property.h"

namespace shardproof {
namespace {

std::vector<float> AnyValues() {
  return *rc::gen::container<std::vector<float>>(rc::gen::map(
      rc::gen::inRange(-1000, 1000), [](int value) { return static_cast<float>(value) / 8; }));
}

TEST(DigestPropertyTest, ShardsAddUpToTheWhole) {
  EXPECT_TRUE(CheckProperty("digests of shards add up to the whole", [] {
    const std::vector<float> values = AnyValues();
    const auto size = static_cast<int64_t>(values.size());
    uint64_t sum = 0;
    for (int64_t at = 0; at < size;) {
      const int64_t count = std::min<int64_t>(size - at, *rc::gen::inRange<int64_t>(1, 9));
      sum += DigestValues(values.data() + at, SPF_F32, at, count);
      at += count;
    }
    RC_ASSERT(sum == DigestValues(values.data(), SPF_F32, 0, size));
  }));
}

TEST(DigestPropertyTest, OneChangedElementChangesTheDigest) {
  EXPECT_TRUE(CheckProperty("one changed element changes the digest", [] {
    std::vector<float> values = AnyValues();
    RC_PRE(!values.empty());
    const auto size = static_cast<int64_t>(values.size());
    const uint64_t before = DigestValues(values.data(), SPF_F32, 0, size);
    values[static_cast<size_t>(*rc::gen::inRange<int64_t>(0, size))] += 0.125f;
    RC_ASSERT(DigestValues(values.data(), SPF_F32, 0, size) != before);
  }));
}

TEST(DigestPropertyTest, PlaceMatters) {
  EXPECT_TRUE(CheckProperty("the same values elsewhere have another digest", [] {
    const std::vector<float> values = AnyValues();
    RC_PRE(!values.empty());
    const auto size = static_cast<int64_t>(values.size());
    const auto shift = *rc::gen::inRange<int64_t>(1, 100);
    RC_ASSERT(DigestValues(values.data(), SPF_F32, 0, size) !=
              DigestValues(values.data(), SPF_F32, shift, size));
  }));
}

}  // namespace
}  // namespace shardproof
