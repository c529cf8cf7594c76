// dtype.h: what is known of an spf_dtype?
//
// Size, name and whether it is floating, for all of conformance/. A number that is no spf_dtype has
// none of them: each function but IsDtype throws std::invalid_argument that names it.
#pragma once
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "conformance/abi/shardproof.h"

namespace shardproof {

// By number, as traces and findings write them. 0 is no dtype.
inline constexpr std::array<std::string_view, 8> kDtypeNames{"",     "u8",  "i32", "i64",
                                                             "bf16", "f16", "f32", "f64"};

constexpr bool IsDtype(int32_t dtype) { return dtype >= SPF_U8 && dtype <= SPF_F64; }

constexpr void RequireDtype(int32_t dtype) {
  if (!IsDtype(dtype)) throw std::invalid_argument(std::to_string(dtype) + " is no spf_dtype");
}

// Of one element.
constexpr uint64_t DtypeBytes(int32_t dtype) {
  RequireDtype(dtype);
  constexpr std::array<uint8_t, 8> kBytes{0, 1, 4, 8, 2, 2, 4, 8};
  return kBytes[static_cast<size_t>(dtype)];
}

inline std::string DtypeName(int32_t dtype) {
  RequireDtype(dtype);
  return std::string(kDtypeNames[static_cast<size_t>(dtype)]);
}

constexpr bool IsFloating(int32_t dtype) {
  RequireDtype(dtype);
  return dtype >= SPF_BF16;
}

}  // namespace shardproof
