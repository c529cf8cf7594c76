// racing_rank.h: what does one rank of a random program do, given its shares in the operations?
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "conformance/common/at.h"

namespace shardproof::graph {

class Dice {
 public:
  explicit Dice(std::mt19937& random) : random_(random) {}
  int32_t Pick(int32_t n) { return static_cast<int32_t>(random_() % static_cast<uint32_t>(n)); }
  bool OneIn(int32_t n) { return Pick(n) == 0; }

 private:
  std::mt19937& random_;
};

// A rank's share in an operation: how the call begins, and what stands behind its stream.
struct Share {
  std::string name, communicator, tail;
  bool host = false, request = false;
  // Accesses: of the host before it, of a kernel on its stream after it.
  std::string before = {}, after = {};
};

// One rank: its shares in their order, with other work between them.
class RankDrawer {
 public:
  static constexpr int32_t kStreams = 3, kEvents = 3, kBlocks = 3, kSlots = 4, kSlotBytes = 16;

  RankDrawer(Dice& dice, std::vector<Share> shares) : dice_(dice), shares_(std::move(shares)) {
    threads_.resize(static_cast<size_t>(dice_.OneIn(2) ? 1 : 2 + dice_.Pick(2)));
    busy_ = dice_.Pick(4);
  }

  // Operations by thread.
  std::vector<std::vector<std::string>> Draw() {
    Shuffle();
    for (size_t i = 0; i < shares_.size(); ++i) {
      for (int32_t n = dice_.Pick(3); n > 0; --n) Other();
      if (i + 1 < shares_.size() && Groups(shares_[i]) && Groups(shares_[i + 1]) &&
          dice_.OneIn(5)) {
        Group(shares_[i], shares_[i + 1]);
        ++i;
      } else {
        Add(shares_[i], Owner(shares_[i].communicator));
      }
    }
    for (int32_t n = dice_.Pick(4); n > 0; --n) Other();
    while (!open_.empty() && !dice_.OneIn(6)) Finish();
    return std::move(threads_);
  }

 private:
  // Neighbours of different communicators change places.
  void Shuffle() {
    for (int32_t swaps = dice_.OneIn(3) ? 0 : dice_.Pick(10); swaps > 0 && !shares_.empty();
         --swaps) {
      const auto at = static_cast<size_t>(dice_.Pick(Length(shares_)));
      if (at + 1 < shares_.size() && shares_[at].communicator != shares_[at + 1].communicator)
        std::swap(shares_[at], shares_[at + 1]);
    }
  }

  int32_t Thread() { return dice_.Pick(Length(threads_)); }

  // The thread that may use a stream, event, communicator or request now.
  int32_t& Owner(const std::string& resource) {
    return owners_.try_emplace(resource, Thread()).first->second;
  }

  void HandOver(int32_t from, int32_t to) {
    const std::string number = " f" + std::to_string(hand_overs_++);
    At(threads_, from).push_back("post" + number);
    At(threads_, to).push_back("await" + number);
  }

  // The resource's name, after a hand-over if another thread has it.
  const std::string& Take(const std::string& resource, int32_t thread) {
    int32_t& owner = Owner(resource);
    if (owner != thread) {
      HandOver(owner, thread);
      owner = thread;
    }
    return resource;
  }

  // Mostly one that needs no hand-over.
  std::string Stream(int32_t thread) {
    std::string stream;
    for (int32_t tries = 3; tries > 0; --tries) {
      stream = "s" + std::to_string(dice_.Pick(kStreams));
      if (Owner(stream) == thread) break;
    }
    return Take(stream, thread);
  }

  std::string Event(int32_t thread) {
    return Take("e" + std::to_string(dice_.Pick(kEvents)), thread);
  }

  // " read=b0[16,48)", or nothing.
  std::string Accesses() {
    if (dice_.Pick(4) > busy_) return "";
    std::string text;
    for (int32_t n = std::max(0, dice_.Pick(4) - 1); n > 0; --n) {
      const int32_t from = dice_.Pick(kSlots), to = from + 1 + dice_.Pick(kSlots - from);
      const int32_t block = dice_.Pick(kBlocks);
      text += dice_.OneIn(2) ? " read=b" : " write=b";
      text += std::to_string(block) + "[" + std::to_string(from * kSlotBytes) + "," +
              std::to_string(to * kSlotBytes) + ")";
    }
    return text;
  }

  void Add(const Share& share, int32_t thread) {
    Take(share.communicator, thread);
    std::vector<std::string>& list = At(threads_, thread);
    if (!share.before.empty()) list.push_back("host_access" + share.before);
    std::string call = share.name + " " + share.communicator, stream;
    if (share.request) {
      open_.push_back("q" + std::to_string(requests_++));
      owners_[open_.back()] = thread;
      call = "start " + call + " " + open_.back();
    } else if (share.host) {
      call = "host " + call;
    } else {
      stream = " " + Stream(thread);
      call += stream;
    }
    list.push_back(call + share.tail + Accesses());
    if (!share.after.empty()) list.push_back("kernel" + stream + share.after);
  }

  static bool Groups(const Share& share) { return !share.host && share.after.empty(); }

  void Group(const Share& first, const Share& second) {
    const int32_t thread = Owner(first.communicator);
    Take(second.communicator, thread);
    for (int32_t stream = 0; stream < kStreams; ++stream)
      Take("s" + std::to_string(stream), thread);
    At(threads_, thread).push_back("group_begin");
    Add(first, thread);
    Add(second, thread);
    At(threads_, thread).push_back("group_end");
  }

  void Finish() {
    const auto at = open_.begin() + dice_.Pick(Length(open_));
    const int32_t thread = dice_.OneIn(2) ? Owner(*at) : Thread();
    At(threads_, thread).push_back("finish " + Take(*at, thread));
    if (!dice_.OneIn(8)) open_.erase(at);  // else somebody waits for it again
  }

  void Sync(int32_t thread) {
    std::string what;
    if (dice_.OneIn(5)) {
      for (int32_t stream = 0; stream < kStreams; ++stream)
        Take("s" + std::to_string(stream), thread);
      what = "device";
    } else {
      what = dice_.OneIn(2) ? Stream(thread) : Event(thread);
    }
    At(threads_, thread).push_back("sync " + what);
  }

  // A record, and a wait for it.
  void Order(int32_t thread) {
    const std::string event = Event(thread);
    const std::string from = Stream(thread), to = Stream(thread);
    At(threads_, thread).push_back("record " + event + " " + from);
    if (!dice_.OneIn(4)) At(threads_, thread).push_back("wait " + event + " " + to);
  }

  void Other() {
    const int32_t thread = Thread();
    std::vector<std::string>& list = At(threads_, thread);
    switch (dice_.Pick(11)) {
      case 0:
      case 1:
      case 2: {
        const std::string stream = Stream(thread);
        list.push_back("kernel " + stream + Accesses());
        break;
      }
      case 3:
      case 4:
        list.push_back("host_access" + Accesses());
        break;
      case 5:
      case 6:
        Order(thread);
        break;
      case 7:
        Sync(thread);
        break;
      case 8:
      case 9:
        if (!open_.empty()) Finish();
        break;
      default:
        if (threads_.size() > 1) HandOver(thread, (thread + 1) % Length(threads_));
    }
  }

  Dice& dice_;
  std::vector<Share> shares_;
  std::vector<std::vector<std::string>> threads_;
  std::map<std::string, int32_t> owners_;
  std::vector<std::string> open_;  // requests that somebody may wait for
  int32_t hand_overs_ = 0, requests_ = 0;
  int32_t busy_ = 0;  // so many calls more of four access something
};

}  // namespace shardproof::graph
