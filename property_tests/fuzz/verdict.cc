// verdict.cc: do any bytes of a worker's channel give a verdict, or a sentence?
//
// A verdict that is read is packed again to the same verdict.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#include "conformance/common/frame.h"
#include "conformance/runner/verdict_io.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::string received = bytes;
  bool bad = false;
  while (!bad && shardproof::TakeFrame(&received, &bad)) {
  }
  try {
    const std::string packed = shardproof::PackVerdict(shardproof::UnpackVerdict(bytes));
    if (shardproof::PackVerdict(shardproof::UnpackVerdict(packed)) != packed) {
      std::cerr << "a verdict does not read back\n";
      std::abort();
    }
  } catch (const std::runtime_error&) {
    // refused in words
  }
  return 0;
}
