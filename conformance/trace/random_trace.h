// random_trace.h: which traces may a recorder write? For tests: random ones, with every kind of
// event.
#pragma once
#include <bit>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/common/at.h"
#include "conformance/trace/event.h"

namespace shardproof {

// Random traces in the layout that the recorder makes: pools in the order of the events.
class RandomTrace {
 public:
  explicit RandomTrace(uint64_t seed) : random_(seed) {}

  Trace Make() {
    trace_.world = static_cast<int32_t>(Up(7) + 1);
    trace_.rank = static_cast<int32_t>(Up(static_cast<uint64_t>(trace_.world - 1)));
    trace_.case_id = Text();
    for (bool Provides::*field :
         {&Provides::groups, &Provides::sync, &Provides::digests, &Provides::calls}) {
      trace_.provides.*field = Coin();
    }
    trace_.end = static_cast<TraceEnd>(Up(2));
    trace_.bounded_updates = Coin();
    trace_.end_reason = Coin() ? Text() : "";
    for (uint64_t i = Up(3) + 1; i > 0; --i) AddGroup();
    for (uint64_t i = Up(3) + 1; i > 0; --i) trace_.streams.push_back(Text());
    for (uint64_t i = Up(200); i > 0; --i) AddEvent();
    if (!open_.empty() && trace_.end == TraceEnd::kComplete) trace_.end = TraceEnd::kDied;
    return trace_;
  }

 private:
  uint64_t Up(uint64_t most) { return std::uniform_int_distribution<uint64_t>(0, most)(random_); }
  bool Coin() { return Up(1) == 1; }
  int32_t Id() { return static_cast<int32_t>(Coin() ? Up(9) : Up((1 << 24) - 1)); }
  int32_t IdOrNone() { return Coin() ? Id() : -1; }
  int64_t Wide() { return std::bit_cast<int64_t>(random_()) >> Up(63); }
  // Bytes and elements: up to 2^40.
  int64_t Size() { return Wide() & ((int64_t{1} << 40) - 1); }
  double Value() {
    switch (Up(7)) {
      case 0:
        return std::bit_cast<double>(random_());
      case 1:
        return -0.;
      case 2:
        return std::numeric_limits<double>::infinity();
      case 3:
        return -std::numeric_limits<double>::infinity();
      case 4:
        return std::numeric_limits<double>::quiet_NaN();
      case 5:
        return std::numeric_limits<double>::denorm_min();
      case 6:
        return static_cast<double>(
            static_cast<float>(std::bit_cast<int32_t>(static_cast<uint32_t>(random_()))));
      default:
        return static_cast<double>(Up(100)) / 8;
    }
  }
  std::string Text() {
    static const std::string kTexts[] = {
        "", "a", "dp_cp", "quote \" and \\ and \n\t\x01", "größer \xF0\x9F\x98\x80", "{\"e\":1}"};
    return kTexts[Up(5)];
  }
  int32_t Intern(const std::string& text) {
    for (size_t i = 0; i < trace_.strings.size(); ++i) {
      if (trace_.strings[i] == text) return static_cast<int32_t>(i);
    }
    trace_.strings.push_back(text);
    return static_cast<int32_t>(trace_.strings.size() - 1);
  }
  void AddGroup() {
    GroupInfo group;
    group.comm = "comm " + Text();
    group.name = Text();
    group.instance = static_cast<int32_t>(Up(3));
    for (int32_t i = trace_.world - 1; i >= 0; --i) {
      if (i == trace_.rank || Coin()) group.world_ranks.push_back(i);
    }
    trace_.groups.push_back(group);
  }
  Slice Numbers(uint64_t most, uint64_t count) {
    if (count == 0) return {};
    const auto begin = static_cast<uint32_t>(trace_.numbers.size());
    for (uint64_t i = 0; i < count; ++i) trace_.numbers.push_back(static_cast<int64_t>(Up(most)));
    return {begin, static_cast<uint32_t>(trace_.numbers.size())};
  }
  Slice Ranges() {
    if (Coin()) return {};
    const auto begin = static_cast<uint32_t>(trace_.ranges.size());
    for (uint64_t i = Up(3) + 1; i > 0; --i) {
      trace_.ranges.push_back({Id(), static_cast<uint8_t>(Up(3)), Size(), Size()});
    }
    return {begin, static_cast<uint32_t>(trace_.ranges.size())};
  }
  int64_t Values(int64_t count) {
    const auto begin = static_cast<int64_t>(trace_.values.size());
    for (int64_t i = 0; i < count; ++i) trace_.values.push_back(Value());
    return begin;
  }
  Slice ReadList() {
    if (Coin()) return {};
    const auto begin = static_cast<uint32_t>(trace_.reads.size());
    for (uint64_t i = Up(3) + 1; i > 0; --i) {
      ParamRead read{Id(), random_(), -1, Size()};
      if (Coin()) {
        read.count = static_cast<int64_t>(Up(5));
        read.values = Values(read.count);
      }
      trace_.reads.push_back(read);
    }
    return {begin, static_cast<uint32_t>(trace_.reads.size())};
  }

  // What the reader asks of rows beyond their keys (row_rules.h).
  void MakeMeaning(Event& e, size_t members) {
    const bool exchange = e.collective == SPF_ALL_TO_ALL_V;
    e.send_counts = Numbers(1u << 30, exchange || Coin() ? members : 0);
    const bool counted = exchange || e.collective == SPF_ALL_GATHER_V;
    e.recv_counts = Numbers(1u << 30, counted || Coin() ? members : 0);
    if (e.peer < 0) e.peer = 0;
    if (e.kind == EventKind::kCollective) {
      if (!e.ranges.empty() && e.collective == 102) e.collective = 101;  // a barrier has none
      if (e.request >= 0) e.stream = -1;
      if (e.request >= 0) started_.push_back(e.request);
    }
    if (e.kind == EventKind::kCallBegin) e.call = -1;
    MakeHandOver(e);
    if (e.kind == EventKind::kGroupEnd && !open_.empty()) {
      e.thread = open_.back();
      open_.pop_back();
    } else if (e.kind == EventKind::kGroupEnd) {
      e.kind = EventKind::kDeviceSync;
    }
    if (e.kind == EventKind::kGroupBegin) open_.push_back(e.thread);
  }

  // Waits and awaits of what was started and posted; if nothing was, something else.
  void MakeHandOver(Event& e) {
    const auto most = [](const auto n) { return static_cast<uint64_t>(n) - 1; };
    if (e.kind == EventKind::kThreadPost) e.id = posts_++;
    if (e.kind == EventKind::kRequestWait) {
      if (started_.empty()) e.kind = EventKind::kDeviceSync;
      if (!started_.empty()) e.id = started_[Up(most(started_.size()))];
    }
    if (e.kind == EventKind::kThreadAwait) {
      if (posts_ == 0) e.kind = EventKind::kDeviceSync;
      if (posts_ > 0) e.id = static_cast<int32_t>(Up(most(posts_)));
    }
  }

  void AddEvent() {
    Event e;
    e.kind = static_cast<EventKind>(Up(static_cast<uint64_t>(EventKind::kCount_) - 1));
    const uint64_t op = Up(11);
    e.collective = static_cast<uint8_t>(op < 8 ? op + 1 : op + 93);
    e.dtype = static_cast<uint8_t>(Up(6) + 1);
    e.reduction = static_cast<uint8_t>(Up(3));
    e.phase = static_cast<uint8_t>(Up(5));
    e.result = static_cast<uint8_t>(Up(7));
    e.status = static_cast<uint8_t>(Up(8));
    e.flag = Coin();
    e.thread = static_cast<uint16_t>(Up(65535));
    e.instance = static_cast<uint16_t>(Up(3));
    e.call = IdOrNone();
    e.stream = static_cast<int32_t>(Up(trace_.streams.size() - 1));
    e.event = Id();
    e.group = static_cast<int32_t>(Up(trace_.groups.size() - 1));
    e.parent = static_cast<int32_t>(Up(trace_.groups.size() - 1));
    e.alloc = Id();
    const auto members = [&](int32_t group) { return At(trace_.groups, group).world_ranks.size(); };
    e.peer = static_cast<int32_t>(Up(members(e.group))) - 1;
    e.id = static_cast<int32_t>(Wide() >> 32);
    if (e.id == -1) e.id = 0;
    e.request = IdOrNone();
    e.purpose = static_cast<int32_t>(Up(20));
    e.module = IdOrNone();
    e.microbatch = IdOrNone();
    e.sample = Wide();
    e.offset = Size();
    e.digest = random_();
    // Kinds that need a key have it; the writer leaves defaults out.
    if (e.result == 0) e.result = 1;
    if (e.kind == EventKind::kRefused) e.breaks = static_cast<uint8_t>(Up(kBreakable.size() - 1));
    e.text = Intern(Text());
    if (Coin()) e.text2 = Intern(Text());
    if (Coin()) e.place = Intern(Text());
    e.ranges = Ranges();
    e.reads = ReadList();
    e.ranks = Numbers(members(e.parent) - 1, Up(5));
    MakeMeaning(e, members(e.group));
    e.count = Size() | 1;
    if (Coin()) {
      e.count = static_cast<int64_t>(Up(4)) + 1;
      e.values = Values(e.count);
    }
    trace_.events.push_back(e);
  }

  std::mt19937_64 random_;
  Trace trace_;
  std::vector<int32_t> started_;  // requests
  int32_t posts_ = 0;
  std::vector<uint16_t> open_;  // threads with an open group, once for each
};

}  // namespace shardproof
