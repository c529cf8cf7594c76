// case_id.cc: does every text get a case, or a sentence that says what is wrong with it?
//
// A text that is read is written back in one form, which is a fixed point.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#include "conformance/cases/case.h"

namespace {

void Require(bool holds, const std::string& text, const char* what) {
  if (holds) return;
  std::cerr << "case id '" << text << "': " << what << "\n";
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const std::string id = shardproof::Id(shardproof::ParseId(text));
    Require(shardproof::Id(shardproof::ParseId(id)) == id, text, "does not read back");
  } catch (const std::invalid_argument& error) {
    Require(error.what()[0] != '\0', text, "is refused without a word");
  }
  return 0;
}
