#include "conformance/trace/cuda/digest.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "conformance/abi/shardproof.h"
#include "conformance/cuda/for_each.h"
#include "conformance/trace/digest.h"

namespace shardproof {
namespace {

// As many indices as a large GPU runs at once; each adds up elements that many apart, so that
// neighbours read neighbouring memory, and adds to the sum once.
constexpr int64_t kMostParts = int64_t{1} << 18;

template <class Bits>
constexpr Bits Load(const std::byte* data, int64_t i) {
  Bits bits{};
  const std::byte* from = data + i * static_cast<int64_t>(sizeof(Bits));
  std::memcpy(&bits, __builtin_assume_aligned(from, sizeof(Bits)), sizeof(Bits));
  return bits;
}

// minus_zero is the bit pattern that counts as zero; 0 for integers.
template <class Bits>
void Sum(Queue& queue, const std::byte* data, int64_t first_index, int64_t count, Bits minus_zero,
         uint64_t* sum) {
  const int64_t parts = std::min(count, kMostParts);
  ForEach(queue, "digest", parts, [=] SHARDPROOF_KERNEL(int64_t part) {
    uint64_t mine = 0;
    for (int64_t i = part; i < count; i += parts) {
      const Bits bits = Load<Bits>(data, i);
      mine += DigestElement(first_index + i, bits == minus_zero ? 0 : bits);
    }
    AtomicAdd(sum, mine);
  });
}

}  // namespace

void DigestOnDevice(Queue& queue, const std::byte* data, int32_t dtype, int64_t first_index,
                    int64_t count, uint64_t* sum) {
  switch (dtype) {
    case SPF_U8:
      return Sum<uint8_t>(queue, data, first_index, count, 0, sum);
    case SPF_I32:
      return Sum<uint32_t>(queue, data, first_index, count, 0, sum);
    case SPF_I64:
      return Sum<uint64_t>(queue, data, first_index, count, 0, sum);
    case SPF_BF16:
    case SPF_F16:
      return Sum<uint16_t>(queue, data, first_index, count, 0x8000, sum);
    case SPF_F32:
      return Sum<uint32_t>(queue, data, first_index, count, 0x80000000u, sum);
    case SPF_F64:
      return Sum<uint64_t>(queue, data, first_index, count, uint64_t{1} << 63, sum);
    default:
      throw std::invalid_argument("digest: unknown dtype " + std::to_string(dtype));
  }
}

}  // namespace shardproof
