#include "conformance/host/host.h"

namespace shardproof {

uint64_t BytesOf(int32_t dtype) {
  switch (dtype) {
    case SPF_U8:
      return 1;
    case SPF_BF16:
    case SPF_F16:
      return 2;
    case SPF_I32:
    case SPF_F32:
      return 4;
    case SPF_I64:
    case SPF_F64:
      return 8;
    default:
      return 0;
  }
}

const char* DtypeName(int32_t dtype) {
  static constexpr const char* kNames[] = {"none", "u8", "i32", "i64", "bf16", "f16", "f32", "f64"};
  return dtype >= SPF_U8 && dtype <= SPF_F64 ? kNames[dtype] : "no dtype";
}

}  // namespace shardproof
