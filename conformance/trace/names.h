// names.h: how are kinds and enumerators spelled in a trace on disk? (FORMAT.md lists them.)
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "conformance/common/dtype.h"
#include "conformance/trace/event.h"

namespace shardproof::trace_names {

// Names by value; an empty name is a value that does not exist.
template <size_t n>
using Names = std::array<std::string_view, n>;

inline constexpr Names<static_cast<size_t>(EventKind::kCount_)> kKinds = {
    "call_begin",    "call_end",      "knob",           "group_ask",      "group_create",
    "group_destroy", "stream_create", "stream_destroy", "stream_sync",    "event_create",
    "event_destroy", "record",        "wait",           "event_sync",     "device_sync",
    "alloc",         "free",          "copy",           "host_access",    "group_begin",
    "group_end",     "collective",    "request_wait",   "compute",        "launch",
    "init",          "publish",       "mark",           "refused",        "explain",
    "thread_post",   "thread_await",  "no_memory",      "group_register", "group_deregister",
    "release"};

inline constexpr Names<8> kDtypes = kDtypeNames;
inline constexpr Names<9> kCollectives = {
    "",           "all_gather", "all_gather_v", "reduce_scatter",
    "all_reduce", "broadcast",  "all_to_all_v", "send",
    "recv"};
// Only in traces from elsewhere.
inline constexpr int kFirstForeignCollective = 101;
inline constexpr Names<4> kForeignCollectives = {"reduce", "barrier", "gather", "scatter"};
inline constexpr Names<6> kReductions = {"sum", "avg", "max", "min", "prod", "premul_sum"};
inline constexpr Names<4> kPhases = {"fwd", "bwd", "dgrad", "wgrad"};
inline constexpr Names<6> kResults = {"", "param", "grad", "loss", "grad_norm", "zero_count"};
inline constexpr Names<7> kStatuses = {"ok",        "refused", "unsupported", "rejected",
                                       "no_memory", "aborted", "failed"};
inline constexpr Names<16> kPurposes = {
    "other",         "param_shard",   "param_full",      "grad",      "grad_shard", "main_param",
    "optimizer",     "activation",    "activation_grad", "scratch",   "norm",       "outer_grad",
    "expert_tokens", "expert_counts", "pipeline",        "checkpoint"};
inline constexpr Names<kBreakable.size()> kBreaks = kBreakable;
inline constexpr Names<3> kEnds = {"complete", "aborted", "died"};

struct ProvidesField {
  std::string_view name;
  bool Provides::*field;
};
inline constexpr std::array<ProvidesField, 9> kProvides = {{{"groups", &Provides::groups},
                                                            {"collectives", &Provides::collectives},
                                                            {"sync", &Provides::sync},
                                                            {"memory", &Provides::memory},
                                                            {"work", &Provides::work},
                                                            {"digests", &Provides::digests},
                                                            {"results", &Provides::results},
                                                            {"marks", &Provides::marks},
                                                            {"calls", &Provides::calls}}};

// Finds the value of a name by hashing; built at compile time.
class NameIndex {
 public:
  template <size_t n>
  constexpr explicit NameIndex(const Names<n>& names) : names_(names.data()) {
    static_assert(n < kSlots / 2);
    for (int16_t& slot : slots_) slot = -1;
    for (size_t value = 0; value < n; ++value) {
      if (names[value].empty()) continue;
      size_t at = Hash(names[value]);
      while (slots_[at] >= 0) at = (at + 1) % kSlots;
      slots_[at] = static_cast<int16_t>(value);
    }
  }
  // -1 if there is no such name.
  constexpr int Find(std::string_view name) const {
    if (name.empty()) return -1;
    for (size_t at = Hash(name); slots_[at] >= 0; at = (at + 1) % kSlots) {
      if (names_[slots_[at]] == name) return slots_[at];
    }
    return -1;
  }

 private:
  static constexpr size_t kSlots = 128;
  static constexpr size_t Hash(std::string_view name) {
    const auto at = [&](size_t i) {
      return static_cast<size_t>(static_cast<unsigned char>(name[i]));
    };
    return (name.size() * 7 + at(0) * 3 + at(name.size() - 1) * 11 + at(name.size() / 2) * 5) %
           kSlots;
  }
  const std::string_view* names_;
  std::array<int16_t, kSlots> slots_{};
};

}  // namespace shardproof::trace_names
