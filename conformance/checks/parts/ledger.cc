#include "conformance/checks/parts/ledger.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "conformance/common/at.h"

namespace shardproof::parts {

void Ledger::Whole(std::string why) {
  if (whole_.empty()) whole_ = "rank " + std::to_string(trace_.rank) + ": " + std::move(why);
}

// Within a part the checks see it.
void Ledger::Create(std::vector<State>& of, int32_t id, const char* what) {
  const auto index = static_cast<size_t>(id);
  if (of.size() <= index) of.resize(index + 1, State::kUnknown);
  if (cut_ && of[index] != State::kUnknown)
    Whole(what + std::to_string(id) + " is created, and was there before");
  of[index] = State::kCreated;
}

void Ledger::Destroy(std::vector<State>& of, int32_t id) {
  if (id < 0) return;
  State& state = of[static_cast<size_t>(id)];
  if (state == State::kCreated) --handles_;
  state = State::kGone;
}

void Ledger::Use(std::vector<State>& of, int32_t id, const char* what) {
  if (id < 0) return;
  const auto index = static_cast<size_t>(id);
  if (of.size() <= index) of.resize(index + 1, State::kUnknown);
  if (cut_ && of[index] == State::kGone)
    Whole(what + std::to_string(id) + " is used after its destruction");
  if (of[index] == State::kUnknown) of[index] = State::kUsed;
}

void Ledger::Blocks(const Event& event) {
  switch (event.kind) {
    case EventKind::kAlloc:
      Create(allocs_, event.alloc, "block ");
      blocks_[event.alloc] = {event, {}, false};
      break;
    case EventKind::kFree:
      blocks_.erase(event.alloc);
      break;
    case EventKind::kRelease:
      if (const auto block = blocks_.find(event.alloc); block != blocks_.end()) {
        block->second.released = event;
        block->second.is_released = true;
      }
      break;
    default:
      break;
  }
}

// With entry calls between them steps are compared, which takes the whole run. A program that is
// one call is none of that kind.
void Ledger::Calls(const Event& event) {
  const std::string_view name = trace_.Text(event.text);
  if (name != "create" && name != "destroy")
    return Whole("it has entry calls (" + std::string(name) + "), which are compared");
  const bool ends = event.kind == EventKind::kCallEnd;
  if (ends && event.status != 0) Whole(std::string(name) + " did not answer ok");
  if (ends && name == "destroy" && (handles_ > 0 || !groups_.empty()))
    Whole("something is left behind");
  calls_.push_back(event);
}

// A communicator that ends, or that blocks are registered with, is followed to the end of the run.
void Ledger::Groups(const Event& event) {
  switch (event.kind) {
    case EventKind::kGroupCreate:
      if (cut_) Whole("a group is created in the middle of the run");
      if (event.group >= 0) groups_.insert(event.group);
      break;
    case EventKind::kGroupDestroy:
      groups_.erase(event.group);
      may_cut_ = false;
      break;
    case EventKind::kGroupRegister:
    case EventKind::kGroupDeregister:
      if (cut_) Whole("a block is registered in the middle of the run");
      may_cut_ = false;
      break;
    default:
      break;
  }
}

// What can be said from the kind of a row alone.
void Ledger::Kinds(const Event& event) {
  switch (event.kind) {
    case EventKind::kCallBegin:
    case EventKind::kCallEnd:
      return Calls(event);
    case EventKind::kRefused:
    case EventKind::kNoMemory:
      return Whole("a call was refused");
    case EventKind::kAlloc:
    case EventKind::kFree:
    case EventKind::kRelease:
      return Blocks(event);
    case EventKind::kRecord:
      if (event.event >= 0) recorded_[event.event] = event;
      return;
    case EventKind::kCollective: {
      const auto group = static_cast<size_t>(event.group);
      if (event.group < 0) return;
      if (uses_.size() <= group) uses_.resize(group + 1);
      uses_[group] |= event.stream < 0 ? 1 : 2;
      return;
    }
    default:
      return Groups(event);
  }
}

void Ledger::See(const Event& event) {
  if (event.instance != 0) Whole("it has several engine instances");
  // One that has the communicator of an earlier one would have been seen at that one's creation.
  SeeTables();
  if (event.kind == EventKind::kStreamCreate || event.kind == EventKind::kEventCreate) {
    const bool stream = event.kind == EventKind::kStreamCreate;
    Create(stream ? streams_ : events_, stream ? event.stream : event.event,
           stream ? "stream " : "event object ");
    if (stream) made_streams_[event.stream] = event;
    ++handles_;
    return;
  }
  Kinds(event);
  Use(streams_, event.stream, "stream ");
  Use(events_, event.event, "event object ");
  if (event.kind == EventKind::kStreamDestroy) {
    Destroy(streams_, event.stream);
    made_streams_.erase(event.stream);
  }
  if (event.kind == EventKind::kEventDestroy) {
    Destroy(events_, event.event);
    recorded_.erase(event.event);
  }
}

void Ledger::SeeTables() {
  if (cut_ && trace_.groups.size() != groups_at_cut_)
    Whole("a group is defined in the middle of the run");
}

void Ledger::Cut() {
  cut_ = true;
  groups_at_cut_ = trace_.groups.size();
}

void Ledger::Begin(Trace& part, uint16_t thread) const {
  const auto sorted = [](const auto& map) {
    std::vector<int32_t> ids;
    for (const auto& [id, value] : map) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  const auto add = [&](Event event) {
    event.thread = thread;
    event.ranges = event.reads = event.ranks = event.send_counts = event.recv_counts = {};
    event.values = -1;
    part.events.push_back(event);
  };
  for (const auto& [stream, made] : made_streams_) add(made);
  const std::vector<int32_t> blocks = sorted(blocks_);
  for (const int32_t id : blocks) add(blocks_.at(id).made);
  for (const int32_t id : sorted(recorded_)) add(recorded_.at(id));
  Event sync;
  sync.kind = EventKind::kDeviceSync;
  add(sync);
  for (const int32_t id : blocks) {
    if (blocks_.at(id).is_released) add(blocks_.at(id).released);
  }
}

std::map<std::string, int> Ledger::UsesOfCommunicators() const {
  std::map<std::string, int> uses;
  for (size_t group = 0; group < uses_.size(); ++group)
    uses[trace_.groups[group].comm] |= uses_[group];
  return uses;
}

}  // namespace shardproof::parts
