// The layout that engines built elsewhere rely on. abi_layout.c pins the same numbers as C99 and
// C11 see them.
#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>

#include "conformance/abi/shardproof.h"
#include "conformance/abi/spf.hpp"

namespace {

TEST(AbiLayout, SizesAndOffsetsArePinned) {
#define SHARDPROOF_SIZE(type, bytes) EXPECT_EQ(sizeof(type), size_t{bytes}) << #type;
#define SHARDPROOF_OFFSET(type, member, bytes) \
  EXPECT_EQ(offsetof(type, member), size_t{bytes}) << #type "." #member;
#include "conformance/abi/abi_layout.inc"
#undef SHARDPROOF_SIZE
#undef SHARDPROOF_OFFSET
}

TEST(AbiLayout, EveryMemberOfTheHostIsPinned) {
  // A pointer each after the four numbers: a member that abi_layout.inc does not list makes the
  // struct longer.
  size_t members = 0;
#define SHARDPROOF_SIZE(type, bytes)
#define SHARDPROOF_OFFSET(type, member, bytes) \
  members += std::string_view(#type) == "spf_host" ? 1 : 0;
#include "conformance/abi/abi_layout.inc"
#undef SHARDPROOF_SIZE
#undef SHARDPROOF_OFFSET
  EXPECT_EQ(sizeof(spf_host), 4 * sizeof(uint32_t) + (members - 4) * sizeof(void*));
}

TEST(AbiLayout, HasLooksAtTheSizeAndAtThePointer) {
  spf_host host = {};
  host.size = offsetof(spf_host, mark);
  EXPECT_FALSE(SPF_HAS(&host, mark)) << "a host of an older minor version";
  host.size = sizeof(spf_host);
  EXPECT_FALSE(SPF_HAS(&host, mark)) << "a host that leaves it out";
  host.mark = [](spf_host*, spf_hook, int32_t, int32_t) { return SPF_OK; };
  EXPECT_TRUE(SPF_HAS(&host, mark));
}

TEST(AbiShorthand, GuardTurnsExceptionsIntoStatuses) {
  EXPECT_EQ(spf::Guard([] {}), SPF_OK);
  EXPECT_EQ(spf::Guard([] { spf::Check(SPF_ABORTED); }), SPF_ABORTED);
  EXPECT_EQ(spf::Guard([] { throw 1; }), SPF_FAILED);
}

}  // namespace
