#include "conformance/fabric/nccl/ledger.h"

#include <algorithm>
#include <utility>

#include "conformance/common/at.h"

namespace shardproof {
namespace {

constexpr int32_t kMostUnmarked =
    64;  // local entries of a stream; bounds memory and how vague a report is
constexpr size_t kMostLines = 16;

}  // namespace

int32_t Ledger::AddStream(std::string_view name, int32_t gpu_stream) {
  streams_.emplace_back();
  streams_.back().gpu_stream = gpu_stream;
  return device_.CreateStream(name);
}

void Ledger::DropStream(int32_t stream) {
  EventBehind(stream);
  At(streams_, stream).gpu_stream = -1;
  device_.DestroyStream(stream);
}

int32_t Ledger::AddGroup(std::string_view key, const std::vector<int32_t>& world_ranks) {
  ++groups_;
  return device_.AddGroup(key, world_ranks);
}

void Ledger::Local(int32_t stream, std::string_view what) {
  const EntryId entry = device_.AddLocal(stream, what, nullptr);
  if (++At(streams_, stream).unmarked < kMostUnmarked) return;
  Mark(entry, stream);
  Look();
}

void Ledger::Mark(EntryId entry, int32_t stream) {
  Stream& on = At(streams_, stream);
  if (spare_events_.empty()) {
    events_.push_back(gpu_.CreateEvent(false));
    spare_events_.push_back(events_.back());
  }
  const int32_t event = spare_events_.back();
  gpu_.Record(event, on.gpu_stream);
  spare_events_.pop_back();
  on.marks.push_back({entry, event});
  on.unmarked = 0;
  event_of_[entry] = event;
}

int32_t Ledger::EventBehind(int32_t stream) {
  const EntryId last = device_.LastOn(stream);
  if (device_.Done(last)) return -1;
  if (!event_of_.count(last)) Mark(last, stream);
  return event_of_.at(last);
}

int32_t Ledger::EventBehindKernel(EntryId kernel) const {
  const auto found = event_of_.find(kernel);
  return device_.Done(kernel) || found == event_of_.end() ? -1 : found->second;
}

std::vector<int32_t> Ledger::Busy() const {
  std::vector<int32_t> busy;
  for (size_t i = 0; i < streams_.size(); ++i) {
    const auto stream = static_cast<int32_t>(i);
    if (!device_.Done(device_.LastOn(stream))) busy.push_back(stream);
  }
  return busy;
}

bool Ledger::Look() {
  bool any = false;
  for (Stream& stream : streams_) {
    while (!stream.marks.empty()) {
      const MarkedEntry mark = stream.marks.front();
      if (!device_.Done(mark.entry)) {
        if (!gpu_.Done(mark.event)) break;
        Complete(mark.entry);
      }
      any = true;
      event_of_.erase(mark.entry);
      spare_events_.push_back(mark.event);
      stream.marks.pop_front();
    }
  }
  device_.TakeNewlyReady();
  return any;
}

// With it all that must have completed before it. Issue order is an order in which they can.
void Ledger::Complete(EntryId entry) {
  for (const EntryId id : device_.CompletesFirst({entry})) {
    device_.Start(id);
    device_.Complete(id);
  }
}

void Ledger::Abandon() {
  device_.Abandon();
  event_of_.clear();
  for (Stream& stream : streams_) stream.marks.clear();
}

void Ledger::DropEvents() {
  Abandon();
  for (const int32_t event : events_) gpu_.DestroyEvent(event);
  events_.clear();
}

std::string Ledger::Line(EntryId id) const {
  const Entry& entry = device_.entry(id);
  std::string text = device_.Describe(id);
  if (entry.kind == EntryKind::kKernel) {
    const bool message = entry.ops[0].kind == SPF_SEND || entry.ops[0].kind == SPF_RECV;
    text += message ? ", message #" : ", collective #";
    text +=
        std::to_string(entry.positions[0]) + " of communicator " + device_.group(entry.group).key;
  }
  const bool free = entry.state == EntryState::kReady;
  return text + (free ? " is not known to be complete" : " is queued: " + device_.WhyQueued(id)) +
         "\n";
}

std::string Ledger::Pending() const {
  std::vector<EntryId> shown = device_.Fronts();
  std::string text;
  for (const EntryId id : shown) text += Line(id);
  for (EntryId id = 0; id < device_.issued() && shown.size() < kMostLines; ++id) {
    if (device_.Done(id) || device_.entry(id).kind != EntryKind::kKernel) continue;
    if (std::find(shown.begin(), shown.end(), id) != shown.end()) continue;
    shown.push_back(id);
    text += Line(id);
  }
  return text;
}

std::vector<CommPosition> Ledger::Positions() const {
  std::vector<CommPosition> positions;
  for (int32_t group = 0; group < groups_; ++group) {
    const DeviceGroup& known = device_.group(group);
    positions.push_back({known.key, known.members, known.collectives, -1, ""});
  }
  for (EntryId id = 0; id < device_.issued(); ++id) {
    if (device_.Done(id) || device_.entry(id).kind != EntryKind::kKernel) continue;
    const Entry& entry = device_.entry(id);
    CommPosition& position = At(positions, entry.group);
    for (size_t i = 0; i < entry.ops.size() && position.oldest < 0; ++i) {
      if (entry.ops[i].kind == SPF_SEND || entry.ops[i].kind == SPF_RECV) continue;
      position.oldest = entry.positions[i];
      position.what = entry.ops[i].what;
    }
  }
  return positions;
}

}  // namespace shardproof
