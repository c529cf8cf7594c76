// host_for_test.h: what of a host do counts and values need? One whose streams are slow: a copy
// happens when the host waits for an event that was recorded after it, and not before.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "conformance/abi/spf.hpp"

namespace reference {

struct HostForTest : spf_host {
  HostForTest() : spf_host{} {
    size = sizeof(spf_host);
    model = [](spf_host* h) -> const spf_model* { return &Self(h).tables; };
    event_create = [](spf_host* h, spf_event* out) {
      *out = reinterpret_cast<spf_event>(++Self(h).events);
      return SPF_OK;
    };
    event_destroy = [](spf_host* h, spf_event) {
      --Self(h).events_alive;
      return SPF_OK;
    };
    event_record = [](spf_host* h, spf_event, spf_stream) {
      ++Self(h).events_alive;
      return SPF_OK;
    };
    event_sync = [](spf_host* h, spf_event) {
      ++Self(h).syncs;
      for (const auto& [to, from, bytes] : std::exchange(Self(h).copies, {}))
        std::memcpy(Self(h).At(to), Self(h).At(from), bytes);
      return SPF_OK;
    };
    mem_alloc = [](spf_host* h, spf_stream stream, uint64_t bytes, spf_place, spf_label,
                   spf_addr* out) {
      *out = 0;
      if (bytes == 0) return SPF_OK;
      *out = Self(h).next += 1 << 20;
      Self(h).blocks[*out].resize(bytes);
      Self(h).stream_of[*out] = stream;
      return SPF_OK;
    };
    mem_free = [](spf_host* h, spf_stream, spf_addr address) {
      return Self(h).blocks.erase(address) == 1 ? SPF_OK : SPF_REFUSED;
    };
    copy = [](spf_host* h, spf_stream, spf_addr to, spf_addr from, uint64_t bytes) {
      Self(h).copies.push_back({to, from, bytes});
      return SPF_OK;
    };
    host_access = [](spf_host* h, spf_addr address, uint64_t, spf_access, void** out) {
      *out = Self(h).At(address);
      return SPF_OK;
    };
    launch = [](spf_host* h, spf_stream, const spf_launch*) {
      ++Self(h).launches;
      return SPF_OK;
    };
    communicate = [](spf_host* h, int32_t, const spf_collective* op) {
      Self(h).sent.assign(op->send_counts, op->send_counts + 2);
      Self(h).received.assign(op->recv_counts, op->recv_counts + 2);
      Self(h).operations.push_back(*op);
      return SPF_OK;
    };
  }

  struct PendingCopy {
    spf_addr to, from;
    uint64_t bytes;
  };
  static HostForTest& Self(spf_host* h) { return *static_cast<HostForTest*>(h); }
  std::byte* At(spf_addr address) { return blocks.at(address).data(); }
  void Write(spf_addr address, const std::vector<int64_t>& values) {
    std::memcpy(At(address), values.data(), values.size() * sizeof(int64_t));
  }

  spf_model tables{};
  std::map<spf_addr, std::vector<std::byte>> blocks;
  std::map<spf_addr, spf_stream> stream_of;  // where a block was allocated
  std::vector<PendingCopy> copies;
  std::vector<spf_collective> operations;
  std::vector<uint64_t> sent, received;  // of the last operation over two ranks
  spf_addr next = 0;
  uintptr_t events = 0;
  int events_alive = 0, syncs = 0, launches = 0;
};

}  // namespace reference
