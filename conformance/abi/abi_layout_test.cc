#include <gtest/gtest.h>
#include "conformance/abi/spf.hpp"
TEST(X, Y) { EXPECT_EQ(sizeof(spf_label), 12u); }
