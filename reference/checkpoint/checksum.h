// checksum.h: how does a reader notice that bytes are not those that were written?
//
// CRC-32 as in Ethernet, zlib and PNG (polynomial 0x04C11DB7 reflected, initial and final
// inversion). It finds every error within 32 neighbouring bits and any other with all but 2^-32 of
// the chances, zeros that a file system left behind included, and other programs can check it:
// zlib.crc32 in Python. Sizes are kept beside it. It is no defence against somebody who means harm.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace reference {

inline uint32_t Crc32(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t x = i;
      for (int bit = 0; bit < 8; ++bit) x = (x & 1U) != 0 ? 0xEDB88320U ^ (x >> 1U) : x >> 1U;
      t[i] = x;
    }
    return t;
  }();
  uint32_t crc = 0xFFFFFFFFU;
  for (char byte : bytes)
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU] ^ (crc >> 8U);
  return ~crc;
}

}  // namespace reference
