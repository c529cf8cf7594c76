// user_buffers.h: with nccl_ub, does every gather of parameters and every reduction of gradients
// use memory that is registered with its group?
//
// Judges FS-43, and says for FS-31 which of a rank's blocks wait for their next use.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/base/byte_map.h"

namespace shardproof {

CheckResult CheckUserBuffers(const Analysis& a);

// Registered memory of one rank and instance. Bytes lie idle from SPF_K_DISCARD to the next
// operation that writes them. Memory is kept to be used again: of one size of block, purpose and
// set of groups no more is kept than was in use at once. What goes beyond that, or was never used,
// is not spared.
class KeptBuffers {
 public:
  explicit KeptBuffers(const Trace& trace) : trace_(trace) {}
  // Events of the instance, in the host's order.
  void See(const Event& event);
  // Bytes that lie idle and may.
  int64_t SparedBytes() const;

 private:
  // Bytes of a block, purpose, and groups by their communicators.
  using Class = std::tuple<int64_t, int32_t, std::set<std::string>>;
  void Make(int32_t alloc, const Class& kind);
  void Reclass(const Event& event);
  void Use(int32_t alloc, int64_t begin, int64_t end);
  void Drop(int32_t alloc);

  const Trace& trace_;
  std::map<int32_t, Class> blocks_;  // of place SPF_REGISTRABLE, by id
  std::map<Class, int64_t> held_, peak_;
  ByteMap<Class> used_;
};

}  // namespace shardproof
