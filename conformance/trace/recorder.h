// recorder.h: how does a trace come into being while an engine runs?
//
// One Recorder per rank, shared by all engine instances of the rank. Events are appended by the
// rank's host thread in issue order. What only exists when device work has run (digests, values) is
// written by that work into slots with stable addresses, and Finish() puts it into the events: so
// the recorder never blocks and never reorders. Texts are cleaned (clean_text.h): what Finish()
// answers is what the reader makes of what the writer writes.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof {

class Recorder {
 public:
  // Filled by device work; done tells that it ran.
  struct Slot {
    bool done = false;
    uint64_t digest = 0;
    std::vector<double> values;
  };

  Recorder(int rank, int world, std::string case_id, RecordLevel level);

  RecordLevel level() const { return level_; }
  bool digests() const { return level_ >= RecordLevel::kDigests; }
  bool bytes() const { return level_ >= RecordLevel::kBytes; }

  // stop is called when this event is about to be added.
  void StopAt(int64_t event, std::function<void()> stop) {
    stop_at_ = event;
    stop_ = std::move(stop);
  }

  // Appends an event and returns it; the reference holds until the next Add. At kOff it is dropped.
  Event& Add(EventKind kind, int instance);
  // These belong to the event that was added last.
  void AddRange(const Range& range);
  void AddRead(int32_t param, int64_t count, Slot* slot);
  void AddNumbers(Slice Event::*field, const int64_t* numbers, size_t count);
  void SetText(std::string_view text);
  void SetText2(std::string_view text);
  // The event's digest and values come from the slot.
  void LinkSlot(Slot* slot);
  Slot* NewSlot();

  int32_t AddGroup(GroupInfo group);
  int32_t next_group() const { return static_cast<int32_t>(trace_.groups.size()); }
  void NameStream(int32_t stream, std::string_view name);
  int64_t size() const { return events_; }

  // Call once, after the rank's device work has run or can run no more.
  Trace Finish(TraceEnd end, const std::string& reason);

 private:
  struct Link {
    uint32_t event = 0;
    int32_t read = -1;  // index into reads, or -1: the event itself
    Slot* slot = nullptr;
  };
  int32_t Intern(std::string_view text);
  void Seal();
  std::vector<Event> Unseal() const;
  bool off() const { return level_ == RecordLevel::kOff; }

  int64_t stop_at_ = -1;
  std::function<void()> stop_;
  RecordLevel level_;
  Trace trace_;  // all that is not below
  int64_t events_ = 0;
  Event last_;  // of these; the others are sealed
  // An event's words that are not as in Event{}, after a mask that tells which.
  std::deque<uint64_t> sealed_;
  std::deque<Range> ranges_;
  std::deque<ParamRead> reads_;
  std::deque<int64_t> numbers_;
  std::deque<Slot> slots_;
  std::vector<Link> links_;
  std::unordered_map<std::string, int32_t> interned_;
};

}  // namespace shardproof
