#include "conformance/fabric/mpi/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace shardproof::mpi {
namespace {

constexpr uint64_t kIssuedAtOnce = 32;  // calls before the device is woken for them

// As long as the host thread waits; ends however its wait ends. REQUIRES: the lock is held at both
// ends.
class Blocked {
 public:
  Blocked(std::atomic<uint32_t>& blocking, const std::function<bool()>*& waits_for,
          const std::function<bool()>& done)
      : blocking_(blocking), waits_for_(waits_for) {
    blocking_.store(1);
    waits_for_ = &done;
  }
  ~Blocked() {
    waits_for_ = nullptr;
    blocking_.store(0);
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  std::atomic<uint32_t>& blocking_;
  const std::function<bool()>*& waits_for_;
};

}  // namespace

Machine::Machine(const MachineConfig& config, SharedMemory& shared)
    : config_(config),
      shared_(shared),
      device_(config.rank),
      arena_(config.rank, config.arena_bytes),
      out_(&shared->to_supervisor, shared.heap_to_supervisor(), shared.heap_bytes()),
      in_(&shared->to_child) {}

void Machine::Note(const char* call) {
  state().call.store(call);
  state().calls.fetch_add(1);
}

void Machine::Issue(const char* call, const std::function<void(Device&, Arena&)>& issue) {
  Note(call);
  state().progress.fetch_add(1);
  {
    const Lock lock(mutex_);
    issue(device_, arena_);
  }
  // What a call issues can wait for the calls behind it: a wake for each would cost more than all
  // else that the fabric does. The host wakes the device before it blocks; the supervisor looks.
  const bool now = config_.lasts_us != nullptr || ++issued_ % kIssuedAtOnce == 0;
  now ? state().device.Raise() : state().device.RaiseLate();
}

void Machine::FreeExecuted(int32_t block) {
  const Lock lock(mutex_);
  arena_.FreeExecuted(block);
}

int32_t Machine::OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks) {
  Note("group_open");
  state().progress.fetch_add(1);
  const Lock lock(mutex_);
  Group group;
  group.key = std::string(key);
  // Each opening is a communicator of its own, as all members open alike.
  const auto again = opened_.find(key);
  const int times = again == opened_.end() ? 0 : again->second;
  if (times) group.key += "#" + std::to_string(times + 1);
  opened_[std::string(key)] = times + 1;
  group.hash = HashText(group.key);
  group.members_hash = HashRanks(world_ranks);
  const int32_t id = device_.AddGroup(group.key, world_ranks);
  groups_.push_back(std::move(group));
  return id;
}

std::string Machine::GroupKey(int32_t group) {
  const Lock lock(mutex_);
  return groups_[static_cast<size_t>(group)].key;
}

spf_status Machine::Block(Lock& lock, const char* call, const std::string& about,
                          const std::function<bool()>& done) {
  Note(call);
  std::snprintf(state().call_about, sizeof state().call_about, "%s", about.c_str());
  const Blocked blocked(state().blocking, waits_for_, done);
  state().device.WakeLate();
  bool waited = false;  // otherwise nothing has moved: an engine may ask again and again for ever
  while (true) {
    const uint32_t seen = state().host.Now();
    if (aborted()) {
      NoticeAbort();
      break;
    }
    if (done()) break;
    waited = true;
    lock.unlock();
    state().host.Sleep(seen);
    lock.lock();
  }
  if (waited) state().progress.fetch_add(1);
  if (!aborted()) return SPF_OK;
  state().unwinding.store(1);
  return SPF_ABORTED;
}

void Machine::WakeHost() {
  if (waits_for_ != nullptr && (*waits_for_)()) state().host.Raise();
}

spf_status Machine::WaitFor(
    const char* call, const std::function<EntryId(const Device&, std::string* about)>& target) {
  Lock lock(mutex_);
  std::string about;
  const EntryId entry = target(device_, &about);
  return Block(lock, call, about, [&] { return device_.Done(entry); });
}

spf_status Machine::Drain() {
  Lock lock(mutex_);
  return Block(lock, "drain", "all its device work", [&] { return device_.pending() == 0; });
}

spf_status Machine::Meet(const char* call, const HostMeeting& mine, int64_t* position,
                         std::vector<std::vector<int32_t>>* lists) {
  Lock lock(mutex_);
  if (aborted()) return SPF_ABORTED;
  Group& group = groups_[static_cast<size_t>(mine.group)];
  const DeviceGroup& members = device_.group(mine.group);
  WireHeader header = Header(mine.kind, mine.group, 0);
  const MeetingPlace::Kind kind = PlaceOf(header).kind;
  header.position = *position = group.host_calls[kind]++;
  header.payload = mine.list.size() * sizeof(int32_t);
  std::vector<int32_t> others;
  for (const int32_t rank : members.members) {
    if (rank != config_.rank) others.push_back(rank);
  }
  Send(header, nullptr, reinterpret_cast<const std::byte*>(mine.list.data()), others);
  const MeetingPlace place{group.hash, kind, -1, *position};
  meetings_.At(place).needed = static_cast<int32_t>(others.size());
  host_meeting_ = &place;
  host_group_ = mine.group;
  const spf_status status = Block(lock, call, "#" + std::to_string(*position) + " on " + group.key,
                                  [&] { return meetings_.At(place).complete(); });
  host_meeting_ = nullptr;
  if (status != SPF_OK) return status;
  Meeting meeting = meetings_.Take(place);
  lists->assign(members.members.size(), {});
  (*lists)[static_cast<size_t>(members.me)] = mine.list;
  for (auto& [member, part] : meeting.arrived) {
    std::vector<int32_t>& list = (*lists)[static_cast<size_t>(member)];
    list.resize(part.message.header.payload / sizeof(int32_t));
    if (!list.empty())
      std::memcpy(list.data(), part.message.payload, list.size() * sizeof(int32_t));
    in_.Return(part.block);
  }
  return SPF_OK;
}

void Machine::Fail(std::string_view reason) {
  const Lock lock(mutex_);
  if (failed_.exchange(true)) return;
  Tell(MessageKind::kFailed, reason.empty() ? "failed without a reason" : reason);
  NoticeAbort();
}

void Machine::Mismatch(const std::string& text) {
  const Lock lock(mutex_);
  Tell(MessageKind::kMismatch, text);
}

void Machine::End(MessageKind kind, std::string_view payload) {
  mutex_.lock();  // never released: the other thread must not send after the last message
  Tell(kind, payload);
  // A result larger than the ring's slots would need this; the supervisor polls.
  while (!out_.AllTaken()) {
    out_.Flush();
    usleep(100);
  }
  state().finished.store(1);
  std::fflush(nullptr);
  _exit(0);
}

WireHeader Machine::Header(MessageKind kind, int32_t group, int64_t position) const {
  WireHeader header;
  header.epoch = config_.epoch;
  header.kind = kind;
  header.source = config_.rank;
  header.position = position;
  if (group < 0) return header;
  const Group& known = groups_[static_cast<size_t>(group)];
  header.group = known.hash;
  header.members = known.members_hash;
  header.from_member = device_.group(group).me;
  return header;
}

void Machine::Send(const WireHeader& header, const CommOp* op, const std::byte* payload,
                   const std::vector<int32_t>& to) {
  if (to.empty()) return;
  const uint64_t bytes = MessageBytes(header);
  std::byte* data = out_.Allocate(bytes);
  if (data == nullptr) {
    throw std::runtime_error("no room for a message of " + std::to_string(bytes) +
                             " bytes: raise MpiOptions::message_bytes");
  }
  WriteMessage(header, op, payload, data);
  for (const int32_t rank : to) out_.Post({data, bytes, rank});
}

void Machine::Tell(MessageKind kind, std::string_view payload) {
  WireHeader header = Header(kind, -1, 0);
  header.payload = payload.size();
  Send(header, nullptr, reinterpret_cast<const std::byte*>(payload.data()), {kToSupervisor});
}

void Machine::NoticeAbort() {
  if (std::exchange(abort_noticed_, true)) return;
  Tell(MessageKind::kPending, PendingText());
  device_.Abandon();
  bodies_.clear();
  apart_.clear();
  complete_.clear();
  state().host.Raise();
}

}  // namespace shardproof::mpi
