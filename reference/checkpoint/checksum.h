// checksum.h: how does a reader notice that bytes are not those that were written?
//
// CRC-32 as in Ethernet, zlib and PNG. It finds every error within 32 neighbouring bits and any
// other with all but 2^-32 of the chances, zeros that a file system left behind included, and other
// programs can check it: zlib.crc32 in Python. Sizes are kept beside it. It is no defence against
// somebody who means harm.
#pragma once
#include <boost/crc.hpp>
#include <cstdint>
#include <string_view>

namespace reference {

inline uint32_t Crc32(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

}  // namespace reference
