// What a rank's machine waits for, in words, for the report of a hang.
#include <algorithm>

#include "conformance/fabric/mpi/machine.h"

namespace shardproof::mpi {
namespace {

constexpr size_t kLinesMax = 12;

void AddOnce(int32_t rank, std::vector<int32_t>* ranks) {
  if (std::find(ranks->begin(), ranks->end(), rank) == ranks->end()) ranks->push_back(rank);
}

std::string Ranks(const std::vector<int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

}  // namespace

void Machine::AddMissing(const Meeting& meeting, const DeviceGroup& group, int32_t only,
                         std::vector<int32_t>* missing) const {
  for (size_t member = 0; member < group.members.size(); ++member) {
    const auto index = static_cast<int32_t>(member);
    const bool asked = only >= 0 ? index == only : index != group.me;
    if (asked && !meeting.arrived.count(index)) AddOnce(group.members[member], missing);
  }
}

void Machine::AddPending(EntryId id, std::vector<int32_t>* waits, std::string* text) const {
  const Entry& entry = device_.entry(id);
  *text += device_.Describe(id);
  if (entry.state == EntryState::kRunning && entry.kind == EntryKind::kKernel) {
    std::vector<int32_t> missing;
    for (size_t i = 0; i < entry.ops.size(); ++i) {
      const MeetingPlace place = PlaceFor(entry.ops[i], entry.positions[i]);
      if (const Meeting* meeting = meetings_.Find(place)) {
        AddMissing(*meeting, device_.group(entry.ops[i].group), place.peer, &missing);
      }
    }
    *text += " on communicator " + device_.group(entry.group).key +
             " has started here, not yet on " + Ranks(missing);
    for (const int32_t rank : missing) AddOnce(rank, waits);
  } else if (entry.state == EntryState::kRunning) {
    *text += " is running";
  } else if (entry.state == EntryState::kReady) {
    *text += " is ready to run";
  } else {
    *text += " is queued: " + device_.WhyQueued(id);
  }
  *text += "\n";
}

// First line: the ranks that this rank waits for. Then one line an entry: fronts of the streams,
// then what follows.
std::string Machine::PendingText() const {
  std::vector<int32_t> waits;
  std::string text;
  if (host_meeting_ != nullptr) {
    std::vector<int32_t> missing;
    if (const Meeting* meeting = meetings_.Find(*host_meeting_)) {
      AddMissing(*meeting, device_.group(host_group_), -1, &missing);
    }
    for (const int32_t rank : missing) AddOnce(rank, &waits);
    if (!missing.empty()) text += "its host call has not been made yet by " + Ranks(missing) + "\n";
  }
  std::vector<EntryId> shown = device_.Fronts();
  for (const EntryId id : shown) AddPending(id, &waits, &text);
  // Kernels that are behind these explain why other ranks wait for this one.
  for (EntryId id = 0; id < device_.issued() && shown.size() < kLinesMax; ++id) {
    if (device_.Done(id) || device_.entry(id).kind != EntryKind::kKernel) continue;
    if (std::find(shown.begin(), shown.end(), id) != shown.end()) continue;
    shown.push_back(id);
    AddPending(id, &waits, &text);
  }
  std::string first;
  for (const int32_t rank : waits) first += (first.empty() ? "" : " ") + std::to_string(rank);
  return first + "\n" + text;
}

}  // namespace shardproof::mpi
