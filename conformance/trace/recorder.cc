#include "conformance/trace/recorder.h"

#include <utility>

namespace shardproof {

Recorder::Recorder(int rank, int world, std::string case_id, RecordLevel level) : level_(level) {
  trace_.rank = rank;
  trace_.world = world;
  trace_.case_id = std::move(case_id);
  trace_.provides = level == RecordLevel::kOff ? Provides{} : Provides::All();
  trace_.provides.digests = digests();
  trace_.provides.results = digests();
}

Event& Recorder::Add(EventKind kind, int instance) {
  Event* event = &scratch_;
  if (off()) {
    scratch_ = Event{};
  } else {
    event = &trace_.events.emplace_back();
  }
  event->kind = kind;
  event->instance = static_cast<uint16_t>(instance);
  return *event;
}

namespace {
template <class T>
Slice Extend(const std::vector<T>& pool, Slice slice, size_t added) {
  const auto end = static_cast<uint32_t>(pool.size());
  if (slice.empty()) slice.begin = end - static_cast<uint32_t>(added);
  slice.end = end;
  return slice;
}
}  // namespace

void Recorder::AddRange(const Range& range) {
  if (off()) return;
  trace_.ranges.push_back(range);
  Event& event = trace_.events.back();
  event.ranges = Extend(trace_.ranges, event.ranges, 1);
}

void Recorder::AddRead(int32_t param, int64_t count, Slot* slot) {
  if (off()) return;
  trace_.reads.push_back({param, 0, -1, count});
  Event& event = trace_.events.back();
  event.reads = Extend(trace_.reads, event.reads, 1);
  if (slot == nullptr) return;
  links_.push_back({static_cast<uint32_t>(trace_.events.size() - 1), static_cast<int32_t>(trace_.reads.size() - 1),
                    slot});
}

void Recorder::AddNumbers(Slice Event::*field, const int64_t* numbers, size_t count) {
  if (off() || count == 0) return;
  trace_.numbers.insert(trace_.numbers.end(), numbers, numbers + count);
  Event& event = trace_.events.back();
  event.*field = Extend(trace_.numbers, event.*field, count);
}

void Recorder::SetText(std::string_view text) {
  if (!off()) trace_.events.back().text = Intern(text);
}

void Recorder::SetText2(std::string_view text) {
  if (!off()) trace_.events.back().text2 = Intern(text);
}

void Recorder::LinkSlot(Slot* slot) {
  if (off() || slot == nullptr) return;
  links_.push_back({static_cast<uint32_t>(trace_.events.size() - 1), -1, slot});
}

Recorder::Slot* Recorder::NewSlot() { return off() ? nullptr : &slots_.emplace_back(); }

int32_t Recorder::AddGroup(GroupInfo group) {
  trace_.groups.push_back(std::move(group));
  return static_cast<int32_t>(trace_.groups.size() - 1);
}

void Recorder::NameStream(int32_t stream, std::string_view name) {
  if (trace_.streams.size() <= static_cast<size_t>(stream)) trace_.streams.resize(static_cast<size_t>(stream) + 1);
  trace_.streams[static_cast<size_t>(stream)] = name;
}

int32_t Recorder::Intern(std::string_view text) {
  const auto [at, added] = interned_.try_emplace(std::string(text), static_cast<int32_t>(trace_.strings.size()));
  if (added) trace_.strings.emplace_back(text);
  return at->second;
}

Trace Recorder::Finish(TraceEnd end, std::string reason) {
  trace_.end = end;
  trace_.end_reason = std::move(reason);
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
      trace_.reads[static_cast<size_t>(link.read)].digest = link.slot->digest;
      trace_.reads[static_cast<size_t>(link.read)].values = first;
    }
  }
  links_.clear();
  slots_.clear();
  return std::move(trace_);
}

}  // namespace shardproof
