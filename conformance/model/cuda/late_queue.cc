#include "conformance/model/cuda/late_queue.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "conformance/cuda/immediate_queue.h"

namespace shardproof {
namespace {

constexpr std::byte kPoison{0xFF};  // NaN, and -1
constexpr uint64_t kGuard = 64;

bool IsPoison(const std::byte* begin, const std::byte* end) {
  return std::all_of(begin, end, [](std::byte b) { return b == kPoison; });
}

}  // namespace

std::byte* LateQueue::Take(uint64_t bytes) {
  if (bytes == 0) throw std::logic_error("temporary memory of no bytes was asked for");
  Block& block = blocks_.emplace_back();
  block.bytes.assign(bytes + kGuard, kPoison);
  block.size = bytes;
  return block.bytes.data();
}

void LateQueue::Return(std::byte* memory) {
  for (Block& block : blocks_) {
    if (block.bytes.data() != memory) continue;
    if (block.returned) throw std::logic_error("temporary memory was returned twice");
    block.returned = true;
    return Fill(memory, static_cast<int>(kPoison), block.size);
  }
  throw std::logic_error("memory was returned that nobody took");
}

void LateQueue::Fill(std::byte* to, int byte, uint64_t bytes) {
  Run([=] { std::memset(to, byte, bytes); });
}

void LateQueue::Copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  Run([=] { std::memcpy(to, from, bytes); });
}

void LateQueue::Upload(std::byte* to, const void* from, uint64_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  Run([to, copy = std::vector<std::byte>(begin, begin + bytes)] {
    std::memcpy(to, copy.data(), copy.size());
  });
}

void LateQueue::Download(void* to, const std::byte* from, uint64_t bytes) {
  Run([=] { std::memcpy(to, from, bytes); });
}

void LateQueue::Multiply(const Gemm& gemm) {
  Run([gemm] { MultiplyOnHost(gemm); });
}

void LateQueue::Flush() {
  for (const std::function<void()>& work : work_) work();
  work_.clear();
  for (const Block& block : blocks_) {
    const std::byte *begin = block.bytes.data(), *end = begin + block.size;
    const std::string which = "temporary memory of " + std::to_string(block.size) + " bytes was ";
    if (!block.returned) throw std::logic_error(which + "never returned");
    if (!IsPoison(end, end + kGuard)) throw std::logic_error(which + "written past its end");
    if (!IsPoison(begin, end)) throw std::logic_error(which + "written after its return");
  }
  blocks_.clear();
}

}  // namespace shardproof
