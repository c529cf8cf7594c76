// Which word was meant?
#include "conformance/common/nearest.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

TEST(Nearest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(Nearest("zeor3", {"zero1", "zero3", "ddp"}), "zero3");
  EXPECT_EQ(Nearest("ge-05", {"FS-05", "GE-05"}), "GE-05");
  EXPECT_EQ(Nearest("--tming", {"--trace", "--timing", "--timings"}), "--timing");
  EXPECT_EQ(DidYouMean("dpp", {"ddp"}), ". Did you mean ddp?");
}

TEST(Nearest, SaysNothingWhereNoWordIsNear) {
  EXPECT_EQ(Nearest("nonsense", {"zero1", "ddp"}), "");
  EXPECT_EQ(Nearest("", {"zero1"}), "");
  EXPECT_EQ(Nearest(std::string(1000, 'z'), {std::string(1000, 'z')}), "");
  EXPECT_EQ(DidYouMean("nonsense", {}), "");
}

}  // namespace
}  // namespace shardproof
