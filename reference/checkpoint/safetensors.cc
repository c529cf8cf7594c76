#include "reference/checkpoint/safetensors.h"

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "reference/checkpoint/json_integer.h"

namespace reference {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");
constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit

[[noreturn]] void Refuse(const std::string& path, const std::string& what) {
  throw CheckpointError("checkpoint file " + path + ": " + what +
                        "; it is damaged or not a safetensors file: put the original back or load "
                        "another checkpoint");
}

SafetensorsEntry EntryOf(const std::string& key, const nlohmann::ordered_json& json) {
  const auto& offsets = json.at("data_offsets");
  return {key,
          {json.at("dtype"), IntegersOf(json.at("shape"))},
          static_cast<uint64_t>(IntegerOf(offsets.at(0))),
          static_cast<uint64_t>(IntegerOf(offsets.at(1)))};
}

// Bytes of an element.
uint64_t WidthOf(const std::string& path, const SafetensorsEntry& entry) {
  try {
    return entry.facts.element_bytes();
  } catch (const CheckpointError& error) {
    Refuse(path, "tensor " + entry.key + ": " + error.what());
  }
}

// In the order of the file; offsets must cover the data without gaps.
std::map<std::string, SafetensorsEntry> EntriesOf(const std::string& path,
                                                  const nlohmann::ordered_json& json,
                                                  uint64_t data_bytes) {
  std::map<std::string, SafetensorsEntry> entries;
  uint64_t end = 0;
  for (const auto& [key, value] : json.items()) {
    if (key == "__metadata__") continue;
    const SafetensorsEntry entry = EntryOf(key, value);
    const int64_t numel = entry.facts.numel();
    const uint64_t width = WidthOf(path, entry);
    if (numel < 0 || entry.begin != end || entry.end < entry.begin || entry.end > data_bytes ||
        (entry.end - entry.begin) / width != static_cast<uint64_t>(numel) ||
        (entry.end - entry.begin) % width != 0) {
      Refuse(path, "tensor " + key + ", " + entry.facts.Text() + ", has data offsets " +
                       std::to_string(entry.begin) + " to " + std::to_string(entry.end) + " of " +
                       std::to_string(data_bytes) + " bytes");
    }
    end = entry.end;
    entries[key] = entry;
  }
  if (end != data_bytes) {
    Refuse(path, "the header speaks of " + std::to_string(end) + " bytes of data and there are " +
                     std::to_string(data_bytes));
  }
  return entries;
}

}  // namespace

std::string SafetensorsHeader(const std::map<std::string, std::string>& metadata,
                              std::vector<SafetensorsEntry>& entries) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [key, value] : metadata) json["__metadata__"][key] = value;
  uint64_t at = 0;
  for (SafetensorsEntry& entry : entries) {
    entry.begin = at;
    at += static_cast<uint64_t>(entry.facts.numel()) * entry.facts.element_bytes();
    entry.end = at;
    json[entry.key] = {{"dtype", entry.facts.dtype},
                       {"shape", entry.facts.shape},
                       {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = json.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

std::string ReadSafetensorsHeader(FileSystem& files, const std::string& path) {
  const uint64_t size = files.Size(path);
  if (size < 8) Refuse(path, "has " + std::to_string(size) + " bytes, fewer than 8");
  std::string header(8, '\0');
  files.Read(path, 0, 8, header.data());
  uint64_t length = 0;
  std::memcpy(&length, header.data(), sizeof length);
  if (length > kMaxHeader || length > size - 8)
    Refuse(path, "a header of " + std::to_string(length) + " bytes does not fit into a file of " +
                     std::to_string(size));
  header.resize(8 + length);
  files.Read(path, 8, length, header.data() + 8);
  return header;
}

std::map<std::string, SafetensorsEntry> ParseSafetensorsHeader(const std::string& path,
                                                               const std::string& header,
                                                               uint64_t data_bytes) {
  try {
    return EntriesOf(path, nlohmann::ordered_json::parse(header.substr(8)), data_bytes);
  } catch (const NoInteger& error) {
    Refuse(path, error.what());
  } catch (const nlohmann::json::exception& error) {
    Refuse(path, std::string("the header cannot be read: ") + error.what());
  }
}

}  // namespace reference
