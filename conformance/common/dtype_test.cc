#include "conformance/common/dtype.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

TEST(DtypeTest, SizesNamesAndKinds) {
  struct Row {
    int32_t dtype;
    uint64_t bytes;
    const char* name;
    bool floating;
  };
  for (const Row& row :
       {Row{SPF_U8, 1, "u8", false}, Row{SPF_I32, 4, "i32", false}, Row{SPF_I64, 8, "i64", false},
        Row{SPF_BF16, 2, "bf16", true}, Row{SPF_F16, 2, "f16", true}, Row{SPF_F32, 4, "f32", true},
        Row{SPF_F64, 8, "f64", true}}) {
    EXPECT_TRUE(IsDtype(row.dtype));
    EXPECT_EQ(DtypeBytes(row.dtype), row.bytes) << row.name;
    EXPECT_EQ(DtypeName(row.dtype), row.name);
    EXPECT_EQ(IsFloating(row.dtype), row.floating) << row.name;
  }
}

std::string ErrorOf(void (*ask)(int32_t), int32_t dtype) {
  try {
    ask(dtype);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(DtypeTest, UnknownNumbersAreNamed) {
  for (const int32_t dtype : {-1, 0, SPF_F64 + 1}) {
    const std::string error = std::to_string(dtype) + " is no spf_dtype";
    EXPECT_FALSE(IsDtype(dtype));
    EXPECT_EQ(ErrorOf([](int32_t of) { DtypeBytes(of); }, dtype), error);
    EXPECT_EQ(ErrorOf([](int32_t of) { DtypeName(of); }, dtype), error);
    EXPECT_EQ(ErrorOf([](int32_t of) { IsFloating(of); }, dtype), error);
  }
}

}  // namespace
}  // namespace shardproof
