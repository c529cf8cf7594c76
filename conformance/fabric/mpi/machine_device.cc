// The device thread of a rank's machine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "conformance/fabric/in_device_work.h"
#include "conformance/fabric/mpi/machine.h"
#include "conformance/fabric/process/process.h"
#include "conformance/fabric/run_collective.h"

namespace shardproof::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

}  // namespace

void Machine::RunDevice() {
  UntilThrown([this] {
    const uint32_t seen = state().device.Now();
    Lock lock(mutex_);
    out_.Flush();
    bool worked = TakeMessages();
    if (aborted()) {
      NoticeAbort();
    } else {
      worked |= FinishLasting();
      worked |= StartReady();
      worked |= FinishMeetings(lock);
      worked |= RunBody(lock, bodies_);
    }
    if (worked) return;
    const auto longest = LongestRest();
    lock.unlock();
    if (longest) {
      state().device.Nap(seen, *longest);
    } else {
      state().device.Sleep(seen);
    }
  });
}

void Machine::RunCompute() {
  UntilThrown([this] {
    Lock lock(mutex_);
    body_ready_.wait(lock, [this] { return !apart_.empty(); });
    computes_ = true;
    RunBody(lock, apart_);
    computes_ = false;
    state().device.Raise();
  });
}

void Machine::UntilThrown(const std::function<void()>& work) {
  UseSignalStack();
  try {
    while (true) work();
  } catch (const EngineThrew& threw) {
    End(MessageKind::kException, std::string("in device work: ") + threw.what());
  } catch (const std::exception& error) {
    End(MessageKind::kException, kInTheSuite + (", in device work: " + std::string(error.what())));
  }
}

bool Machine::TakeMessages() {
  bool any = false;
  Posted posted;
  while (in_.Take(&posted)) {
    any = true;
    state().progress.fetch_add(1);
    auto message = ReadMessage(posted.data, posted.bytes);
    if (!message || message->header.epoch != config_.epoch) {
      in_.Return(posted.data);
      continue;
    }
    const MeetingPlace place = PlaceOf(message->header);
    const int32_t member = message->header.from_member;
    Meeting& meeting = meetings_.At(place);
    meeting.arrived[member] = {std::move(*message), posted.data};
    if (!meeting.complete()) continue;
    if (meeting.entry >= 0) {
      complete_.push_back(place);
    } else {
      WakeHost();
    }
  }
  return any;
}

bool Machine::StartReady() {
  bool any = false;
  for (auto ready = device_.TakeNewlyReady(); !ready.empty(); ready = device_.TakeNewlyReady()) {
    any = true;
    for (const EntryId id : ready) {
      const EntryKind kind = device_.entry(id).kind;
      if (kind == EntryKind::kLocal) {
        const bool apart = config_.apart && config_.apart(device_.entry(id).what);
        (apart ? apart_ : bodies_).push_back(id);
        if (apart) body_ready_.notify_one();
        continue;
      }
      Entry& entry = device_.Start(id);
      if (kind == EntryKind::kKernel) {
        StartKernel(entry);
      } else {
        Complete(id);
      }
    }
  }
  return any;
}

void Machine::Complete(EntryId entry) {
  device_.Complete(entry);
  state().progress.fetch_add(1);
  WakeHost();
}

bool Machine::RunBody(Lock& lock, std::deque<EntryId>& from) {
  if (from.empty()) return false;
  const EntryId id = from.front();
  from.pop_front();
  Entry& entry = device_.Start(id);
  std::snprintf(state().body, sizeof state().body, "%s", entry.what.c_str());
  const Body body = std::move(entry.body);
  const std::string what = config_.lasts_us ? entry.what : "";
  const auto began = Clock::now();
  double lasts = 0, took = 0;
  lock.unlock();
  if (body) body();
  if (config_.lasts_us) took = Microseconds(Clock::now() - began).count();
  lock.lock();
  if (config_.lasts_us) lasts = config_.lasts_us(what, took);
  state().body[0] = '\0';
  if (lasts > took) {
    lasting_.emplace(began + std::chrono::duration_cast<Clock::duration>(Microseconds(lasts)), id);
  } else {
    Complete(id);
  }
  return true;
}

bool Machine::FinishLasting() {
  bool any = false;
  while (!lasting_.empty() && lasting_.begin()->first <= Clock::now()) {
    any = true;
    const EntryId id = lasting_.begin()->second;
    lasting_.erase(lasting_.begin());
    Complete(id);
  }
  return any;
}

std::optional<std::chrono::nanoseconds> Machine::LongestRest() const {
  if (aborted()) return std::nullopt;  // nothing completes any more
  if (!lasting_.empty()) return lasting_.begin()->first - Clock::now();
  if (computes_ || !apart_.empty()) return std::chrono::hours(1);  // its end raises the signal
  return std::nullopt;
}

void Machine::StartKernel(Entry& entry) {
  remaining_[entry.id] = static_cast<int32_t>(entry.ops.size());
  for (size_t i = 0; i < entry.ops.size(); ++i) StartOp(entry, static_cast<int32_t>(i));
}

MeetingPlace Machine::PlaceFor(const CommOp& op, int64_t position) const {
  using Kind = MeetingPlace::Kind;
  const bool message = op.kind == SPF_SEND || op.kind == SPF_RECV;
  const Kind kind = op.kind == SPF_SEND   ? Kind::kSend
                    : op.kind == SPF_RECV ? Kind::kRecv
                                          : Kind::kCollective;
  return {groups_[static_cast<size_t>(op.group)].hash, kind, message ? op.peer : -1, position};
}

// Tells the others that this rank has started op, with the bytes that each of them needs.
void Machine::StartOp(const Entry& entry, int32_t index) {
  const CommOp& op = entry.ops[static_cast<size_t>(index)];
  const int64_t position = entry.positions[static_cast<size_t>(index)];
  const DeviceGroup& group = device_.group(op.group);
  const auto members = static_cast<int32_t>(group.members.size());
  const bool sends = op.kind == SPF_SEND, message = sends || op.kind == SPF_RECV;
  const MessageKind kind = sends     ? MessageKind::kSendPart
                           : message ? MessageKind::kRecvPart
                                     : MessageKind::kCollective;
  WireHeader header = Header(kind, op.group, position);
  SetShape(op, &header);
  if (message) {
    header.payload = sends ? SendBytes(op, group.me, members) : 0;
    Send(header, &op, op.send, {group.members[static_cast<size_t>(op.peer)]});
  } else if (op.kind == SPF_REDUCE_SCATTER || op.kind == SPF_ALL_TO_ALL_V) {
    for (int32_t to = 0; to < members; ++to) {
      if (to == group.me) continue;
      const PayloadRange range = PayloadFor(op, group.me, to, members);
      header.payload = range.bytes;
      Send(header, &op, op.send + range.offset, {group.members[static_cast<size_t>(to)]});
    }
  } else {
    std::vector<int32_t> others = group.members;
    others.erase(others.begin() + group.me);
    header.payload = SendBytes(op, group.me, members);
    Send(header, &op, op.send, others);
  }
  const MeetingPlace place = PlaceFor(op, position);
  Meeting& meeting = meetings_.At(place);
  meeting.needed = message ? 1 : members - 1;
  meeting.entry = entry.id;
  meeting.op = index;
  if (meeting.complete()) complete_.push_back(place);
}

bool Machine::FinishMeetings(Lock& lock) {
  if (complete_.empty()) return false;
  while (!complete_.empty()) {
    Meeting meeting = meetings_.Take(complete_.front());
    const MeetingPlace place = complete_.front();
    complete_.pop_front();
    // Running: the reference holds while others are issued.
    const Entry& entry = device_.entry(meeting.entry);
    const CommOp& op = entry.ops[static_cast<size_t>(meeting.op)];
    const DeviceGroup group = device_.group(op.group);
    CheckAlike(groups_[static_cast<size_t>(op.group)], group, op, meeting, place.position);
    lock.unlock();
    if (op.kind == SPF_RECV) {
      const WireMessage& from = meeting.arrived.begin()->second.message;
      const uint64_t bytes = std::min(from.header.payload, RecvBytes(op, 1, 2));
      if (bytes) std::memcpy(op.recv, from.payload, bytes);
    } else if (op.kind != SPF_SEND) {
      std::vector<const WireMessage*> all(group.members.size());
      for (const auto& [member, part] : meeting.arrived)
        all[static_cast<size_t>(member)] = &part.message;
      FinishCollective(op, group.me, all);
    }
    lock.lock();
    for (const auto& [member, part] : meeting.arrived) in_.Return(part.block);
    const auto remaining = remaining_.find(meeting.entry);
    if (--remaining->second > 0) continue;
    remaining_.erase(remaining);
    Complete(meeting.entry);
  }
  return true;
}

// Being alike is transitive but for all_to_all_v: each member compares itself with the first one.
void Machine::CheckAlike(const Group& group, const DeviceGroup& members, const CommOp& op,
                         const Meeting& meeting, int64_t at) {
  const bool message = op.kind == SPF_SEND || op.kind == SPF_RECV;
  if (op.kind == SPF_SEND) return;  // the receiver tells
  for (const auto& [member, part] : meeting.arrived) {
    if (!message && member > members.me) break;
    const WireHeader& header = part.message.header;
    const CommOp& theirs = part.message.op;
    std::string text;
    if (header.members != group.members_hash) {
      text = "they know the communicator with different members";
    } else if (message) {
      if (op.count != theirs.count || op.dtype != theirs.dtype) {
        const auto shape = [](const CommOp& o) {
          return std::string(CollectiveName(o.kind)) + " of " + std::to_string(o.count) +
                 " elements of dtype " + std::to_string(o.dtype);
        };
        text = shape(op) + " against " + shape(theirs);
      }
    } else {
      text = ::shardproof::Mismatch(op, members.me, theirs, member,
                                    static_cast<int32_t>(members.members.size()));
    }
    if (!text.empty()) {
      Tell(MessageKind::kMismatch,
           "communicator " + group.key + ", " + (message ? "message" : "collective") + " #" +
               std::to_string(at) + ": rank " + std::to_string(config_.rank) + " against rank " +
               std::to_string(header.source) + ": " + text);
    }
    if (op.kind != SPF_ALL_TO_ALL_V) return;
  }
}

}  // namespace shardproof::mpi
