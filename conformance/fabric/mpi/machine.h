// machine.h: how does one rank's device run in a child process that must not call MPI?
//
// Shared by the child's threads. The host thread issues entries and blocks; the device thread
// starts them, runs local bodies, and meets the other ranks by messages that the supervisor
// carries. Bodies that are to (MachineConfig::apart) run on a third one, the compute thread:
// messages do not wait for them. All methods lock.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/fabric/arena.h"
#include "conformance/fabric/device.h"
#include "conformance/fabric/mpi/case_end.h"
#include "conformance/fabric/mpi/meetings.h"
#include "conformance/fabric/mpi/shared.h"

namespace shardproof::mpi {

struct MachineConfig {
  int32_t rank = 0, world = 1;
  uint64_t epoch = 0;  // case number; the same on all ranks
  uint64_t arena_bytes = 0;
  LastsUs lasts_us = nullptr;
  RunsApart apart = nullptr;
};

// A collective host call: group_create, group_destroy, group_register.
struct HostMeeting {
  MessageKind kind = MessageKind::kCreate;
  int32_t group = -1;
  std::vector<int32_t> list;
};

class Machine {
 public:
  Machine(const MachineConfig& config, SharedMemory& shared);

  int32_t rank() const { return config_.rank; }
  int32_t world() const { return config_.world; }
  bool aborted() const { return failed_.load() || state().abort.load() != 0; }
  ChildState& state() const { return shared_->state; }
  Arena& arena() { return arena_; }  // for the crash handler, and under Issue

  // Notes a host call (a literal), then lets issue change device and arena under the lock; wakes
  // the device thread, now or within a few calls.
  void Issue(const char* call, const std::function<void(Device&, Arena&)>& issue);
  void FreeExecuted(int32_t block);  // from a body
  int32_t OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks);
  std::string GroupKey(int32_t group);

  // Blocks until what target names is done. target runs once, under the lock.
  spf_status WaitFor(const char* call,
                     const std::function<EntryId(const Device&, std::string* about)>& target);
  spf_status Drain();
  // Tells the other members and blocks until all have told. lists: by member.
  spf_status Meet(const char* call, const HostMeeting& mine, int64_t* position,
                  std::vector<std::vector<int32_t>>* lists);

  void Fail(std::string_view reason);
  void Mismatch(const std::string& text);
  // The last message of the child, then the process ends. Callable from all threads.
  [[noreturn]] void End(MessageKind kind, std::string_view payload);

  // The device thread, and the compute thread. They end the process if a body throws.
  void RunDevice();
  void RunCompute();  // REQUIRES: MachineConfig::apart

 private:
  struct Group {
    std::string key;
    uint64_t hash = 0, members_hash = 0;
    std::map<MeetingPlace::Kind, int64_t> host_calls;  // so far
  };
  using Lock = std::unique_lock<std::mutex>;

  // Of the host thread.
  void Note(const char* call);
  spf_status Block(Lock& lock, const char* call, const std::string& about,
                   const std::function<bool()>& done);
  void WakeHost();  // if what it waits for is done; with the lock held
  // Of the device thread, RunBody of the compute thread, too; with the lock held unless a Lock is
  // passed.
  bool TakeMessages();
  bool StartReady();
  bool RunBody(Lock& lock, std::deque<EntryId>& from);
  bool FinishLasting();
  // How long to rest at most: what runs is no rank that is blocked. Nothing: nothing runs.
  std::optional<std::chrono::nanoseconds> LongestRest() const;
  bool FinishMeetings(Lock& lock);
  void StartKernel(Entry& entry);
  void StartOp(const Entry& entry, int32_t index);
  void Complete(EntryId entry);
  void CheckAlike(const Group& group, const DeviceGroup& members, const CommOp& op,
                  const Meeting& meeting, int64_t at);
  void UntilThrown(const std::function<void()>& work);
  // Of all; with the lock held.
  MeetingPlace PlaceFor(const CommOp& op, int64_t position) const;
  WireHeader Header(MessageKind kind, int32_t group, int64_t position) const;
  void Send(const WireHeader& header, const CommOp* op, const std::byte* payload,
            const std::vector<int32_t>& to);
  void Tell(MessageKind kind, std::string_view payload);
  void NoticeAbort();
  std::string PendingText() const;
  void AddPending(EntryId id, std::vector<int32_t>* waits, std::string* text) const;
  void AddMissing(const Meeting& meeting, const DeviceGroup& group, int32_t only,
                  std::vector<int32_t>* missing) const;

  MachineConfig config_;
  SharedMemory& shared_;
  std::mutex mutex_;
  std::condition_variable body_ready_;  // of the compute thread
  Device device_;
  Arena arena_;
  ChannelSender out_;
  ChannelReceiver in_;
  Meetings meetings_;
  std::vector<Group> groups_;
  std::map<std::string, int, std::less<>> opened_;
  std::deque<EntryId> bodies_, apart_;  // ready local entries: of the device, the compute thread
  bool computes_ = false;               // the compute thread runs one
  std::multimap<std::chrono::steady_clock::time_point, EntryId> lasting_;  // until when
  std::deque<MeetingPlace> complete_;                 // meetings of entries that can be finished
  std::map<EntryId, int32_t> remaining_;              // running kernels: operations not finished
  const std::function<bool()>* waits_for_ = nullptr;  // the host thread, until it holds
  uint64_t issued_ = 0;                               // calls; of the host thread
  const MeetingPlace* host_meeting_ = nullptr;
  int32_t host_group_ = -1;
  bool abort_noticed_ = false;
  std::atomic<bool> failed_{false};
};

}  // namespace shardproof::mpi
