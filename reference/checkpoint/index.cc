#include "reference/checkpoint/index.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "reference/checkpoint/checksum.h"
#include "reference/checkpoint/json_integer.h"

namespace reference {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "reference-checkpoint";
constexpr int kVersion = 2;  // 1 had no index

[[noreturn]] void Refuse(const std::string& path, const std::string& what) {
  throw CheckpointError("checkpoint index " + path + ": " + what +
                        "; put the original back or load another checkpoint");
}

json Written(const Index& index) {
  json body = {{"format", kFormat},
               {"version", kVersion},
               {"generation", index.generation},
               {"files", json::object()},
               {"tensors", json::object()}};
  for (const auto& [name, file] : index.files)
    body["files"][name] = {{"bytes", file.bytes}, {"header_crc32", file.header_crc}};
  for (const auto& [name, tensor] : index.tensors) {
    json slices = json::array();
    for (const StoredSlice& slice : tensor.slices) {
      slices.push_back({{"file", slice.file},
                        {"key", slice.key},
                        {"offset", slice.offset},
                        {"count", slice.count},
                        {"crc32", slice.crc}});
    }
    body["tensors"][name] = {
        {"dtype", tensor.facts.dtype}, {"shape", tensor.facts.shape}, {"slices", slices}};
  }
  return body;
}

uint32_t CrcOf(const json& value) {
  return static_cast<uint32_t>(IntegerOf(value, std::numeric_limits<uint32_t>::max()));
}

StoredTensor TensorOf(const json& value) {
  StoredTensor tensor;
  value.at("dtype").get_to(tensor.facts.dtype);
  tensor.facts.shape = IntegersOf(value.at("shape"));
  for (const json& slice : value.at("slices")) {
    tensor.slices.push_back({slice.at("file"), slice.at("key"), IntegerOf(slice.at("offset")),
                             IntegerOf(slice.at("count")), CrcOf(slice.at("crc32"))});
  }
  return tensor;
}

void CheckTensor(const std::string& path, const std::string& name, const StoredTensor& tensor,
                 const Index& index) {
  try {
    tensor.facts.element_bytes();
  } catch (const CheckpointError& error) {
    Refuse(path, "tensor " + name + ": " + error.what());
  }
  int64_t end = 0;
  for (const StoredSlice& slice : tensor.slices) {
    if (slice.offset != end || slice.count < 0 || __builtin_add_overflow(end, slice.count, &end))
      Refuse(path, "tensor " + name + ": the slices do not meet at element " + std::to_string(end));
    if (!index.files.contains(slice.file))
      Refuse(path, "tensor " + name + " is in file " + slice.file + ", which is not listed");
  }
  if (end != tensor.facts.numel())
    Refuse(path, "tensor " + name + ", " + tensor.facts.Text() + ", has slices for " +
                     std::to_string(end) + " elements");
}

Index Read(const std::string& path, const json& body) {
  if (body.at("format") != kFormat || body.at("version") != kVersion) {
    Refuse(path, "is " + body.at("format").dump() + " version " + body.at("version").dump() +
                     " and not " + kFormat + " version " + std::to_string(kVersion));
  }
  Index index;
  index.generation = IntegerOf(body.at("generation"));
  for (const auto& [name, file] : body.at("files").items()) {
    if (name.find('/') != std::string::npos) Refuse(path, "file " + name + " is in another folder");
    index.files[name] = {static_cast<uint64_t>(IntegerOf(file.at("bytes"))),
                         CrcOf(file.at("header_crc32"))};
  }
  for (const auto& [name, value] : body.at("tensors").items()) {
    index.tensors[name] = TensorOf(value);
    CheckTensor(path, name, index.tensors[name], index);
  }
  return index;
}

}  // namespace

std::string IndexText(const Index& index) {
  const json body = Written(index);
  return json{{"checkpoint", body}, {"crc32", Crc32(body.dump())}}.dump(1) + "\n";
}

// The checksum is of the body without spaces; that the text is the very text that would be written
// again leaves no room for damage between.
Index ParseIndex(const std::string& path, const std::string& text) {
  try {
    const json whole = json::parse(text);
    const json& body = whole.at("checkpoint");
    if (whole.at("crc32") != Crc32(body.dump()))
      Refuse(path, "its checksum does not match: it is damaged or was edited");
    if (whole.dump(1) + "\n" != text) Refuse(path, "is not in the form in which it was written");
    return Read(path, body);
  } catch (const NoInteger& error) {
    Refuse(path, error.what());
  } catch (const json::exception& error) {
    Refuse(path, std::string("cannot be read: ") + error.what());
  }
}

std::string KeyOf(const TensorSlice& slice) {
  if (slice.offset == 0 && slice.count == slice.facts.numel()) return slice.tensor;
  return slice.tensor + "[" + std::to_string(slice.offset) + ":" +
         std::to_string(slice.offset + slice.count) + "]";
}

}  // namespace reference
