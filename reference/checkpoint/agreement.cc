#include "reference/checkpoint/agreement.h"

#include <algorithm>
#include <cstring>

#include "reference/core/collectives.h"

namespace reference {
namespace {

constexpr size_t kLength = sizeof(uint64_t);

std::string LengthOf(const std::string& text) {
  const uint64_t length = text.size();
  return {reinterpret_cast<const char*>(&length), kLength};
}
uint64_t ReadLength(const std::string& bytes, size_t at) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data() + at, kLength);
  return length;
}

std::string Pack(const std::vector<std::string>& texts) {
  std::string packed;
  for (const std::string& text : texts) packed += LengthOf(text) + text;
  return packed;
}
// count texts; what follows them is padding.
void Unpack(const std::string& packed, size_t at, size_t count, std::vector<std::string>& texts) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t length = ReadLength(packed, at);
    texts.push_back(packed.substr(at + kLength, length));
    at += kLength + length;
  }
}

}  // namespace

int32_t Agreement::me() const {
  int32_t place = 0, stride = 1;
  for (const Communicator& axis : axes_) {
    place += axis.rank * stride;
    stride *= axis.size();
  }
  return place;
}

std::vector<std::string> Agreement::Gather(const std::string& mine) {
  std::vector<std::string> texts{mine};
  for (const Communicator& axis : axes_) {
    if (axis.size() == 1) continue;
    std::string packed = Pack(texts);
    const std::string lengths = GatherBytes(axis, LengthOf(packed));
    uint64_t longest = 0;
    for (size_t at = 0; at < lengths.size(); at += kLength)
      longest = std::max(longest, ReadLength(lengths, at));
    packed.resize(longest, '\0');
    const std::string all = GatherBytes(axis, packed);
    const size_t count = texts.size();
    texts.clear();
    for (size_t at = 0; at < all.size(); at += longest) Unpack(all, at, count, texts);
  }
  return texts;
}

std::string Agreement::GatherBytes(const Communicator& axis, const std::string& mine) {
  const spf_label label = spf::For(SPF_FOR_CHECKPOINT);
  const uint64_t n = mine.size(), all = n * static_cast<uint64_t>(axis.size());
  const uint64_t place = n * static_cast<uint64_t>(axis.rank);
  spf_addr pinned = host_.Alloc(stream_, all, label, SPF_PINNED);
  spf_addr device = host_.Alloc(stream_, all, label);
  std::memcpy(host_.Touch<char>(pinned + place, n, SPF_WRITE), mine.data(), n);
  host_.Copy(stream_, device + place, pinned + place, n);
  CollectiveBatch batch(host_, axis, stream_);
  batch.AllGather(SPF_U8, device + place, device, static_cast<int64_t>(n), label);
  batch.Issue();
  host_.Copy(stream_, pinned, device, all);
  host_.Free(stream_, device);
  host_.Sync(stream_);
  std::string gathered(host_.Touch<char>(pinned, all, SPF_READ), all);
  host_.Free(stream_, pinned);
  return gathered;
}

}  // namespace reference
