// checkpoint_index.cc: is every text an index of a checkpoint, or refused in words?
//
// The checksum keeps almost every drawn text out, so the text also stands as a body with its right
// checksum around it: what somebody gets who edits an index and mends the checksum.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "reference/checkpoint/checksum.h"
#include "reference/checkpoint/index.h"

namespace {

void Read(const std::string& text) {
  try {
    const reference::Index index = reference::ParseIndex("checkpoint.json", text);
    if (reference::ParseIndex("checkpoint.json", reference::IndexText(index)) != index) {
      std::cerr << "an index does not read back: " << text << "\n";
      std::abort();
    }
  } catch (const reference::CheckpointError& error) {
    if (std::string_view(error.what()).find("checkpoint.json") != std::string_view::npos) return;
    std::cerr << "an error without the file: " << error.what() << "\n";
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Read(text);
  const nlohmann::json body = nlohmann::json::parse(text, nullptr, false);
  if (body.is_discarded()) return 0;
  const nlohmann::json whole = {{"checkpoint", body}, {"crc32", reference::Crc32(body.dump())}};
  Read(whole.dump(1) + "\n");
  return 0;
}
