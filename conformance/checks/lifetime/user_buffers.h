// user_buffers.h: with nccl_ub, does every gather of parameters and every reduction of gradients
// use memory that is registered with its group?
//
// Judges FS-43, and says for FS-31 and FS-32 which of a rank's blocks wait for their next use.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/base/byte_map.h"

namespace shardproof {

CheckResult CheckUserBuffers(const Analysis& a);

// Memory of one rank and instance, of one place, that is kept to be used again. Bytes lie idle from
// SPF_K_DISCARD to the next operation that writes them. Of one size of block, purpose and set of
// groups no more is kept than was in use at once. Of device memory (a pool, double buffers) one
// block more where there are several: the host hands one out while work on the other is still to
// end. What goes beyond that, or was never used, is not spared.
class KeptBuffers {
 public:
  // twice: with fsdp_double_buffer there are two for each that is in use at once.
  explicit KeptBuffers(const Trace& trace, spf_place place = SPF_REGISTRABLE, bool twice = false)
      : trace_(trace), place_(place), twice_(twice) {}
  // Events of the instance, in the host's order.
  void See(const Event& event);
  // Bytes that lie idle and may.
  int64_t SparedBytes() const;

 private:
  // Bytes of a block, purpose, and groups by their communicators.
  using Class = std::tuple<int64_t, int32_t, std::set<std::string>>;
  struct OfClass {
    Class what;
    int64_t held = 0, peak = 0;  // bytes: of its blocks; most in use at once
    std::set<int32_t> busy;      // blocks of which something is in use
    size_t most_busy = 0;
  };
  int64_t SizeOf(size_t number) const { return std::get<0>(classes_[number].what); }
  void Make(int32_t alloc, const Class& kind);
  void Reclass(const Event& event);
  void Use(int32_t alloc, int64_t begin, int64_t end);
  void Discard(int32_t alloc, int64_t begin, int64_t end);
  void Drop(int32_t alloc);

  const Trace& trace_;
  const spf_place place_;
  const bool twice_;
  std::map<int32_t, size_t> blocks_;  // of the place, by id: number of its class
  std::vector<OfClass> classes_;
  std::map<Class, size_t> numbers_;  // of classes
  ByteMap<size_t> used_, touched_;   // now; ever, or discarded
};

}  // namespace shardproof
