#include "conformance/fabric/sim/comm.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace shardproof {

OpMeeting& Sequence::At(int64_t place, size_t parts) {
  assert(place >= base);
  while (base + static_cast<int64_t>(meetings.size()) <= place) {
    meetings.emplace_back();
    meetings.back().parts.resize(parts);
  }
  return meetings[static_cast<size_t>(place - base)];
}

const OpMeeting* Sequence::Find(int64_t place) const {
  const int64_t index = place - base;
  return index >= 0 && index < static_cast<int64_t>(meetings.size())
             ? &meetings[static_cast<size_t>(index)]
             : nullptr;
}

void Sequence::Trim() {
  while (!meetings.empty() &&
         meetings.front().finished == static_cast<int32_t>(meetings.front().parts.size())) {
    meetings.pop_front();
    ++base;
  }
}

Comm::Comm(std::string key, std::vector<int32_t> members, bool minimal_waits,
           std::function<void(KernelId)> ready, std::function<void(std::string)> mismatch)
    : key_(std::move(key)),
      members_(std::move(members)),
      minimal_waits_(minimal_waits),
      ready_(std::move(ready)),
      mismatch_(std::move(mismatch)) {}

Sequence& Comm::SequenceOf(int32_t me, const CommOp& op) {
  if (op.kind == SPF_SEND) return messages_[{me, op.peer}];
  if (op.kind == SPF_RECV) return messages_[{op.peer, me}];
  return collectives_;
}

size_t Comm::PartIndex(int32_t me, const CommOp& op) const {
  if (IsMessage(op)) return op.kind == SPF_SEND ? 0 : 1;
  return static_cast<size_t>(me);
}

// Must other have started before part can complete?
bool Comm::Needs(const Part& part, size_t index, size_t other, size_t parts) const {
  if (index == other) return false;
  if (!minimal_waits_) return true;
  if (part.op.kind == SPF_SEND) return false;
  if (part.op.kind == SPF_RECV) return true;
  return NeedsPeer(part.op, static_cast<int32_t>(index), static_cast<int32_t>(other),
                   static_cast<int32_t>(parts));
}

void Comm::Start(KernelId kernel, int32_t me, CommOp op, int64_t place, bool reads_early) {
  const size_t parts = IsMessage(op) ? 2 : members_.size();
  const size_t index = PartIndex(me, op);
  OpMeeting& meeting = SequenceOf(me, op).At(place, parts);
  Part& part = meeting.parts[index];
  assert(!part.started);
  part.op = std::move(op);
  part.kernel = kernel;
  part.started = true;
  if (reads_early) {
    const uint64_t bytes = SendBytes(part.op, me, static_cast<int32_t>(members_.size()));
    part.copy.assign(part.op.send, part.op.send + bytes);
    part.copied = true;
  }
  NoteMismatch(meeting, index, place);
  for (size_t other = 0; other < parts; ++other) {
    if (!meeting.parts[other].started && Needs(part, index, other, parts)) ++part.missing;
  }
  if (part.missing == 0) ready_(kernel);
  for (size_t other = 0; other < parts; ++other) {
    Part& waiting = meeting.parts[other];
    if (other == index || !waiting.started || waiting.finished ||
        !Needs(waiting, other, index, parts))
      continue;
    if (--waiting.missing == 0) ready_(waiting.kernel);
  }
}

void Comm::NoteMismatch(const OpMeeting& meeting, size_t index, int64_t place) {
  const Part& part = meeting.parts[index];
  const auto members = static_cast<int32_t>(members_.size());
  for (size_t other = 0; other < meeting.parts.size(); ++other) {
    const Part& theirs = meeting.parts[other];
    if (other == index || !theirs.started) continue;
    std::string text;
    if (IsMessage(part.op)) {
      if (part.op.count != theirs.op.count || part.op.dtype != theirs.op.dtype) {
        const auto shape = [](const CommOp& op) {
          return std::string(CollectiveName(op.kind)) + " of " + std::to_string(op.count) +
                 " elements of dtype " + std::to_string(op.dtype);
        };
        text = shape(part.op) + " against " + shape(theirs.op);
      }
    } else {
      text = Mismatch(part.op, static_cast<int32_t>(index), theirs.op, static_cast<int32_t>(other),
                      members);
    }
    if (!text.empty()) {
      mismatch_("communicator " + key_ + ", " + (IsMessage(part.op) ? "message" : "collective") +
                " #" + std::to_string(place) + ": rank " + std::to_string(part.kernel.rank) +
                " against rank " + std::to_string(theirs.kernel.rank) + ": " + text);
    }
    // One comparison is enough: being alike is transitive.
    if (!text.empty() || part.op.kind != SPF_ALL_TO_ALL_V) return;
  }
}

void Comm::Keep(int32_t me, const CommOp& shape, int64_t place) {
  Sequence& sequence = SequenceOf(me, shape);
  OpMeeting& meeting = sequence.At(place, 0);
  Part& part = meeting.parts[PartIndex(me, shape)];
  if (part.copied || shape.kind == SPF_RECV) return;
  // Nobody is left to read it.
  if (meeting.finished + 1 == static_cast<int32_t>(meeting.parts.size())) return;
  part.copy.assign(part.op.send,
                   part.op.send + SendBytes(part.op, me, static_cast<int32_t>(members_.size())));
  part.copied = true;
}

void Comm::Finish(int32_t me, const CommOp& shape, int64_t place) {
  Sequence& sequence = SequenceOf(me, shape);
  OpMeeting& meeting = sequence.At(place, 0);
  Part& part = meeting.parts[PartIndex(me, shape)];
  if (shape.kind == SPF_RECV) {
    const Part& sender = meeting.parts[0];
    const uint64_t bytes = std::min(SendBytes(sender.op, 0, 2), RecvBytes(part.op, 1, 2));
    if (bytes) std::memmove(part.op.recv, sender.send(), bytes);
  } else if (shape.kind != SPF_SEND) {
    std::vector<MemberData> all(meeting.parts.size());
    for (size_t i = 0; i < all.size(); ++i) {
      if (meeting.parts[i].started) all[i] = {&meeting.parts[i].op, meeting.parts[i].send()};
    }
    RunCollective(all, me);
  }
  part.finished = true;
  ++meeting.finished;
  sequence.Trim();
}

std::vector<int32_t> Comm::WaitsFor(int32_t me, const CommOp& shape, int64_t place) const {
  std::vector<int32_t> ranks;
  const auto world_rank = [&](int32_t member) { return members_[static_cast<size_t>(member)]; };
  if (IsMessage(shape)) {
    const bool sends = shape.kind == SPF_SEND;
    const auto found =
        messages_.find(sends ? std::pair{me, shape.peer} : std::pair{shape.peer, me});
    const OpMeeting* meeting = found == messages_.end() ? nullptr : found->second.Find(place);
    if (meeting && !meeting->parts[sends ? 1 : 0].started) ranks.push_back(world_rank(shape.peer));
    return ranks;
  }
  const OpMeeting* meeting = collectives_.Find(place);
  if (!meeting) return ranks;
  const Part& part = meeting->parts[static_cast<size_t>(me)];
  for (size_t other = 0; other < meeting->parts.size(); ++other) {
    if (meeting->parts[other].started) continue;
    if (Needs(part, static_cast<size_t>(me), other, meeting->parts.size()))
      ranks.push_back(members_[other]);
  }
  return ranks;
}

}  // namespace shardproof
