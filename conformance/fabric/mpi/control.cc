#include "conformance/fabric/mpi/control.h"

#include <cstring>
#include <stdexcept>

namespace shardproof::mpi {

std::string PackControl(const ControlMessage& message) {
  Packer packer;
  packer.Number(message.epoch);
  packer.Number(static_cast<uint64_t>(message.kind));
  packer.Number(static_cast<uint64_t>(message.from));
  packer.Number(message.numbers.size());
  for (const uint64_t number : message.numbers) packer.Number(number);
  packer.Text(message.text);
  return packer.Take();
}

ControlMessage UnpackControl(std::string_view packed) {
  Unpacker unpacker(packed);
  ControlMessage message;
  message.epoch = unpacker.Number();
  message.kind = static_cast<ControlKind>(unpacker.Number());
  message.from = static_cast<int32_t>(unpacker.Number());
  for (uint64_t n = unpacker.Number(); n > 0; --n) message.numbers.push_back(unpacker.Number());
  message.text = unpacker.Text();
  return message;
}

uint64_t Unpacker::Number() {
  uint64_t value = 0;
  if (bytes_.size() < sizeof value) throw std::runtime_error("a control message is cut off");
  std::memcpy(&value, bytes_.data(), sizeof value);
  bytes_.remove_prefix(sizeof value);
  return value;
}

std::string Unpacker::Text() {
  const uint64_t size = Number();
  if (bytes_.size() < size) throw std::runtime_error("a control message is cut off");
  std::string text(bytes_.substr(0, size));
  bytes_.remove_prefix(size);
  return text;
}

}  // namespace shardproof::mpi
