// event_keys.h: which keys may an event line have, and which must it have? Internal to the reader.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "conformance/trace/event.h"

namespace shardproof {

inline constexpr std::array<std::string_view, 37> kEventKeys = {
    "i", "e",  "t",  "n",   "c",  "s", "ev",    "g",   "pg", "a",      "op", "ty", "red",
    "p", "id", "ph", "res", "st", "f", "rq",    "for", "m",  "mb",     "sm", "o",  "k",
    "d", "x",  "y",  "r",   "rd", "v", "ranks", "sc",  "rc", "breaks", "at"};

consteval uint64_t Bit(std::string_view key) {
  for (size_t i = 0; i < kEventKeys.size(); ++i) {
    if (kEventKeys[i] == key) return uint64_t{1} << i;
  }
  throw "no such key";
}

// REQUIRES: a bit of Bit, or several: the first.
constexpr std::string_view KeyOfBit(uint64_t bit) {
  return kEventKeys[static_cast<size_t>(std::countr_zero(bit))];
}

// By kind: the keys without which an event means nothing. What depends on more than the kind is in
// row_rules.h.
inline constexpr auto kRequiredKeys = [] {
  using enum EventKind;
  std::array<uint64_t, static_cast<size_t>(kCount_)> keys{};
  const auto require = [&keys](uint64_t bits, std::initializer_list<EventKind> kinds) {
    for (const EventKind kind : kinds) keys[static_cast<size_t>(kind)] = bits;
  };
  require(Bit("x"), {kCallBegin, kCallEnd, kKnob, kGroupAsk, kRefused, kExplain});
  require(Bit("pg"), {kGroupCreate});
  require(Bit("g"), {kGroupDestroy});
  require(Bit("g") | Bit("a") | Bit("k"), {kGroupRegister});
  require(Bit("g") | Bit("a"), {kGroupDeregister});
  require(Bit("s"), {kStreamCreate, kStreamDestroy, kStreamSync, kCompute, kLaunch, kCopy});
  require(Bit("ev"), {kEventCreate, kEventDestroy, kEventSync});
  require(Bit("ev") | Bit("s"), {kRecord, kWait});
  require(Bit("a") | Bit("k"), {kAlloc});
  require(Bit("a"), {kFree, kRelease});
  require(Bit("g") | Bit("op"), {kCollective});
  require(Bit("res") | Bit("s") | Bit("ty"), {kPublish});
  require(Bit("id") | Bit("s") | Bit("ty"), {kInit});
  require(Bit("id"), {kRequestWait, kMark, kThreadPost, kThreadAwait});
  return keys;
}();

}  // namespace shardproof
