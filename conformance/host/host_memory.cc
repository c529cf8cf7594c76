// Memory: alloc and free in stream order, copies, and the host's own accesses to pinned blocks.
#include <algorithm>

#include "conformance/common/dtype.h"
#include "conformance/host/host_internal.h"
#include "conformance/trace/digest.h"

namespace shardproof {

Resolved Host::ResolveElements(spf_addr address, uint64_t count, int32_t dtype, uint8_t access,
                               const std::string& what) const {
  const uint64_t element = DtypeBytes(dtype);
  const Resolved resolved = memory_.Resolve(address, count * element, access, what);
  RefuseUnless(address % element == 0, what + " is not aligned to its dtype " + DtypeName(dtype) +
                                           ": start it at a " + "multiple of " +
                                           std::to_string(element) + " bytes");
  return resolved;
}

spf_status Host::Alloc(spf_stream stream, uint64_t bytes, spf_place place, spf_label label,
                       spf_addr* out) {
  *out = 0;
  const StreamHandle& on = Stream(stream, "stream");
  RefuseUnless(place >= SPF_DEVICE && place <= SPF_REGISTRABLE,
               "place " + std::to_string(place) + " is no spf_place");
  RefuseUnless(bytes <= (uint64_t{1} << 40),
               std::to_string(bytes) + " bytes cannot be meant: a negative size?");
  CheckLabel(label, "label");
  if (bytes == 0) return SPF_OK;
  RefuseTooMany(blocks_made_, "blocks");
  const bool pinned = place == SPF_PINNED;
  const uint64_t limit = pinned || config_.device_memory_bytes == 0
                             ? config_.most_bytes
                             : std::min(config_.device_memory_bytes, config_.most_bytes);
  const uint64_t live = pinned ? memory_.pinned_bytes() : memory_.device_bytes();
  const bool starved = !pinned && device_allocations_++ == config_.no_memory_at;
  if (starved || live + bytes > limit) {
    Event& row = Add(EventKind::kNoMemory);
    row.count = static_cast<int64_t>(bytes);
    row.purpose = label.purpose;
    last_error_ = "mem_alloc: " + std::to_string(bytes) + " bytes (" + PurposeName(label.purpose) +
                  ") on top of " + std::to_string(live) +
                  (starved ? ": the case has no device memory for this allocation"
                           : " exceed the case's " + std::string(pinned ? "pinned" : "device") +
                                 " memory of " + std::to_string(limit)) +
                  " (" + Where() + ")";
    return SPF_NO_MEMORY;
  }
  const bool registrable = place == SPF_REGISTRABLE;
  const Block block =
      registrable ? fabric_.AllocRegistrable(on.id, bytes) : fabric_.Alloc(on.id, bytes, pinned);
  if (block.id < 0) return SPF_ABORTED;  // the fabric had no room: it has ended the run
  ++blocks_made_;
  memory_.Add(block, place, label);
  Event& row = Add(EventKind::kAlloc);
  row.stream = on.id;
  row.alloc = block.id;
  row.count = static_cast<int64_t>(bytes);
  row.id = place;
  row.purpose = label.purpose;
  row.module = label.module1 - 1;
  row.microbatch = label.microbatch1 - 1;
  *out = block.address;
  return SPF_OK;
}

spf_status Host::Free(spf_stream stream, spf_addr address) {
  if (address == 0) return SPF_OK;
  const StreamHandle& on = Stream(stream, "stream");
  const Block block = memory_.StartingAt(address, "the address");
  for (const GroupHandle& group : groups_) {
    RefuseUnless(!group.registered.contains(block.id),
                 "block " + std::to_string(block.id) + " is registered with group \"" + group.name +
                     "\": group_deregister it first",
                 Breaks::kGE17);
  }
  memory_.Remove(address);
  Event& row = Add(EventKind::kFree);
  row.stream = on.id;
  row.alloc = block.id;
  fabric_.Free(on.id, block);
  return SPF_OK;
}

spf_status Host::Copy(spf_stream stream, spf_addr to, spf_addr from, uint64_t bytes) {
  const StreamHandle& on = Stream(stream, "stream");
  if (bytes == 0) return SPF_OK;  // rows may be none; the addresses are not looked at
  const Resolved source = memory_.Resolve(from, bytes, kRead, "src");
  const Resolved target = memory_.Resolve(to, bytes, kWrite, "dst");
  RefuseUnless(from + bytes <= to || to + bytes <= from,
               "src and dst overlap: copy between disjoint ranges");
  Add(EventKind::kCopy).stream = on.id;
  recorder_.AddRange(source.range);
  recorder_.AddRange(target.range);
  fabric_.Enqueue(on.id, "copy",
                  [executor = config_.executor, stream = on.id, source, target, bytes] {
                    executor->Copy(stream, target.host, source.host, bytes);
                  });
  return SPF_OK;
}

spf_status Host::HostAccess(spf_addr address, uint64_t bytes, spf_access access, void** out) {
  *out = nullptr;
  RefuseUnless(access >= SPF_READ && access <= SPF_ADD,
               "access " + std::to_string(access) + " is no spf_access");
  if (bytes == 0) return SPF_OK;
  const Resolved resolved = memory_.Resolve(address, bytes, static_cast<uint8_t>(access), "range");
  RefuseUnless(
      resolved.pinned,
      "the block is device memory: copy it to an SPF_PINNED block, synchronise, and access that");
  Event& row = Add(EventKind::kHostAccess);
  if (recorder_.digests() && (access & SPF_READ) != 0) {
    row.digest = DigestValues(resolved.host, SPF_U8, 0, static_cast<int64_t>(bytes));
  }
  recorder_.AddRange(resolved.range);
  *out = resolved.host;
  return SPF_OK;
}

}  // namespace shardproof
