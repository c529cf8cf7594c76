// safetensors.cc: is every file of tensors read within its bytes, or refused in words?
#include "reference/checkpoint/safetensors.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

namespace {

// One file in memory that can only be read.
class OneFile : public reference::PosixFileSystem {
 public:
  explicit OneFile(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t Size(const std::string&) override { return bytes_.size(); }
  void Read(const std::string&, uint64_t offset, uint64_t bytes, char* out) override {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) {
      std::cerr << "a read of " << bytes << " bytes at " << offset << " of " << bytes_.size()
                << "\n";
      std::abort();
    }
    std::memcpy(out, bytes_.data() + offset, bytes);
  }

 private:
  std::string bytes_;
};

void RequireNamed(const reference::CheckpointError& error) {
  if (std::string_view(error.what()).find("file.safetensors") != std::string_view::npos) return;
  std::cerr << "an error without the file: " << error.what() << "\n";
  std::abort();
}

void Parse(const std::string& header, uint64_t data_bytes) {
  uint64_t sum = 0;
  for (const auto& [key, entry] :
       reference::ParseSafetensorsHeader("file.safetensors", header, data_bytes)) {
    sum += entry.end - entry.begin;
  }
  if (sum != data_bytes) {
    std::cerr << "tensors of " << sum << " bytes in " << data_bytes << "\n";
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    OneFile file(bytes);
    const std::string header = reference::ReadSafetensorsHeader(file, "file.safetensors");
    Parse(header, bytes.size() - header.size());
  } catch (const reference::CheckpointError& error) {
    RequireNamed(error);
  }
  try {  // the text of a header alone, before data of 64 bytes
    Parse(std::string(8, '\0') + bytes, 64);
  } catch (const reference::CheckpointError& error) {
    RequireNamed(error);
  }
  return 0;
}
