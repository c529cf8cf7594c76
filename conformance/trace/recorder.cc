#include "conformance/trace/recorder.h"

#include <array>
#include <bit>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/trace/clean_text.h"

namespace shardproof {

Recorder::Recorder(int rank, int world, std::string case_id, RecordLevel level) : level_(level) {
  trace_.rank = rank;
  trace_.world = world;
  trace_.case_id = std::move(case_id);
  trace_.provides = level == RecordLevel::kOff ? Provides{} : Provides::All();
  trace_.provides.digests = digests();
  trace_.provides.results = digests();
}

namespace {

constexpr size_t kWords = sizeof(Event) / sizeof(uint64_t);
using Words = std::array<uint64_t, kWords>;
const auto kDefault = std::bit_cast<Words>(Event{});

template <class T>
Slice Extend(const std::deque<T>& pool, Slice slice, size_t added) {
  const auto end = static_cast<uint32_t>(pool.size());
  if (slice.empty()) slice.begin = end - static_cast<uint32_t>(added);
  slice.end = end;
  return slice;
}

}  // namespace

Event& Recorder::Add(EventKind kind, int instance) {
  if (!off()) {
    if (events_ == stop_at_) stop_();
    if (events_ > 0) Seal();
    ++events_;
  }
  last_ = Event{};
  last_.kind = kind;
  last_.instance = static_cast<uint16_t>(instance);
  return last_;
}

void Recorder::Seal() {
  const auto words = std::bit_cast<Words>(last_);
  uint64_t mask = 0;
  for (size_t i = 0; i < kWords; ++i) mask |= uint64_t{words[i] != kDefault[i]} << i;
  sealed_.push_back(mask);
  for (; mask != 0; mask &= mask - 1)
    sealed_.push_back(words[static_cast<size_t>(std::countr_zero(mask))]);
}

std::vector<Event> Recorder::Unseal() const {
  std::vector<Event> events(static_cast<size_t>(events_));
  auto at = sealed_.begin();
  for (size_t e = 0; e + 1 < events.size(); ++e) {
    Words words = kDefault;
    for (uint64_t mask = *at++; mask != 0; mask &= mask - 1)
      words[static_cast<size_t>(std::countr_zero(mask))] = *at++;
    events[e] = std::bit_cast<Event>(words);
  }
  if (!events.empty()) events.back() = last_;
  return events;
}

void Recorder::AddRange(const Range& range) {
  if (off()) return;
  ranges_.push_back(range);
  last_.ranges = Extend(ranges_, last_.ranges, 1);
}

void Recorder::AddRead(int32_t param, int64_t count, Slot* slot) {
  if (off()) return;
  reads_.push_back({param, 0, -1, count});
  last_.reads = Extend(reads_, last_.reads, 1);
  if (slot == nullptr) return;
  links_.push_back(
      {static_cast<uint32_t>(events_ - 1), static_cast<int32_t>(reads_.size() - 1), slot});
}

void Recorder::AddNumbers(Slice Event::*field, const int64_t* numbers, size_t count) {
  if (off() || count == 0) return;
  numbers_.insert(numbers_.end(), numbers, numbers + count);
  last_.*field = Extend(numbers_, last_.*field, count);
}

void Recorder::SetText(std::string_view text) {
  if (!off()) last_.text = Intern(text);
}

void Recorder::SetText2(std::string_view text) {
  if (!off()) last_.text2 = Intern(text);
}

void Recorder::LinkSlot(Slot* slot) {
  if (off() || slot == nullptr) return;
  links_.push_back({static_cast<uint32_t>(events_ - 1), -1, slot});
}

Recorder::Slot* Recorder::NewSlot() { return off() ? nullptr : &slots_.emplace_back(); }

int32_t Recorder::AddGroup(GroupInfo group) {
  group.name = CleanText(group.name);
  trace_.groups.push_back(std::move(group));
  return static_cast<int32_t>(trace_.groups.size() - 1);
}

void Recorder::NameStream(int32_t stream, std::string_view name) {
  if (trace_.streams.size() <= static_cast<size_t>(stream))
    trace_.streams.resize(static_cast<size_t>(stream) + 1);
  At(trace_.streams, stream) = CleanText(name);
}

int32_t Recorder::Intern(std::string_view text) {
  const auto [at, added] =
      interned_.try_emplace(CleanText(text), static_cast<int32_t>(trace_.strings.size()));
  if (added) trace_.strings.push_back(at->first);
  return at->second;
}

Trace Recorder::Finish(TraceEnd end, const std::string& reason) {
  trace_.end = end;
  trace_.end_reason = CleanText(reason);
  trace_.events = Unseal();
  trace_.ranges.assign(ranges_.begin(), ranges_.end());
  trace_.reads.assign(reads_.begin(), reads_.end());
  trace_.numbers.assign(numbers_.begin(), numbers_.end());
  for (const Link& link : links_) {
    if (!link.slot->done) continue;
    int64_t first = -1;
    if (!link.slot->values.empty()) {
      first = static_cast<int64_t>(trace_.values.size());
      trace_.values.insert(trace_.values.end(), link.slot->values.begin(), link.slot->values.end());
    }
    if (link.read < 0) {
      trace_.events[link.event].digest = link.slot->digest;
      trace_.events[link.event].values = first;
    } else {
      At(trace_.reads, link.read).digest = link.slot->digest;
      At(trace_.reads, link.read).values = first;
    }
  }
  links_.clear();
  slots_.clear();
  return std::move(trace_);
}

}  // namespace shardproof
