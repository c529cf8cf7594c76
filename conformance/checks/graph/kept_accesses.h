// kept_accesses.h: the accesses to some bytes that a later one may still race with.
//
// Mostly they are few, and all are gone over. Of many streams, host threads or requests that read,
// the older reads are found by component and time: each may read again and again, at the cost of
// what it makes forgotten. Ranges that were one share them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof::graph {

constexpr uint32_t kNeverOver = UINT32_MAX;

struct Access {
  uint32_t entry = 0;
  uint32_t time = 0;  // in its component, when it is over; or kNeverOver
  uint32_t component = 0;
  uint8_t access = 0;  // kRead | kWrite
  bool writes() const { return (access & kWrite) != 0; }
  bool operator==(const Access& other) const = default;
};

class KeptAccesses {
 public:
  // place: of the entry among those that access the block. Of an entry's reads one is kept.
  void Add(const Access& access, uint32_t place) {
    const Placed mine{access, place};
    if (!recent_.empty() && recent_.back() == mine) return;
    if (recent_.size() >= kRecent) MoveReads();
    recent_.push_back(mine);
    mark_ += MarkOf(mine);
  }

  template <typename Visit>
  void VisitWrites(Visit&& visit) const {
    for (const Placed& one : recent_) {
      if (one.writes()) visit(one);
    }
  }

  // Those of the component that are over at time. Returns how many accesses it went over.
  size_t ForgetReads(uint32_t component, uint32_t time) {
    size_t count = recent_.size();
    ForgetRecent([&](const Placed& one) {
      return !one.writes() && one.component == component && one.time <= time;
    });
    if (older_ == nullptr) return count;
    const auto found = older_->find(component);
    if (found == older_->end() || found->second.front().time > time) return count;
    Reads& older = Older();
    std::vector<Placed>& reads = older[component];
    for (; !reads.empty() && reads.front().time <= time; ++count) {
      mark_ -= MarkOf(reads.front());
      std::pop_heap(reads.begin(), reads.end(), Later);
      reads.pop_back();
    }
    if (reads.empty()) older.erase(component);
    return count;
  }

  // Those that are over, and of the others those that ask() says, in sequence, are to be forgotten.
  template <typename Over, typename Ask>
  void ForgetIf(Over&& over, Ask&& ask) {
    if (older_ != nullptr) {
      for (const auto& [component, reads] : *older_) {
        for (const Placed& one : reads) {
          if (over(one)) {
            mark_ -= MarkOf(one);
          } else {
            recent_.push_back(one);
          }
        }
      }
      older_.reset();
      Sort(recent_);
    }
    ForgetRecent([&](const Placed& one) { return over(one) || ask(one); });
  }

  bool operator==(const KeptAccesses& other) const {
    if (mark_ != other.mark_) return false;
    return older_ == other.older_ ? recent_ == other.recent_ : InSequence() == other.InSequence();
  }

 private:
  struct Placed : Access {
    uint32_t place = 0;
    bool operator==(const Placed& other) const = default;
  };
  // By component; of each a heap, the first to be over on top.
  using Reads = std::map<uint32_t, std::vector<Placed>>;
  static bool Later(const Placed& a, const Placed& b) { return a.time > b.time; }
  static constexpr size_t kRecent = 8;

  // The sum of these differs where the accesses do, but for one case in 2^64.
  static uint64_t MarkOf(const Placed& one) {
    uint64_t mark = (uint64_t{one.place} * 2 + one.writes()) * 0x9e3779b97f4a7c15;
    mark = (mark ^ mark >> 32) * 0xd6e8feb86659fd93;
    return mark ^ mark >> 32;
  }

  template <typename Forget>
  void ForgetRecent(Forget&& forget) {
    size_t kept = 0;
    for (size_t i = 0; i < recent_.size(); ++i) {
      if (forget(recent_[i])) {
        mark_ -= MarkOf(recent_[i]);
      } else {
        if (kept < i) recent_[kept] = recent_[i];
        ++kept;
      }
    }
    recent_.resize(kept);
  }

  // The older reads, to be changed.
  Reads& Older() {
    if (older_ == nullptr) {
      older_ = std::make_shared<Reads>();
    } else if (older_.use_count() > 1) {
      older_ = std::make_shared<Reads>(*older_);
    }
    return *older_;
  }

  void MoveReads() {
    std::erase_if(recent_, [&](const Placed& one) {
      if (one.writes()) return false;
      std::vector<Placed>& reads = Older()[one.component];
      reads.push_back(one);
      std::push_heap(reads.begin(), reads.end(), Later);
      return true;
    });
  }

  // An entry's read that is kept beside its write came behind it.
  static void Sort(std::vector<Placed>& accesses) {
    std::sort(accesses.begin(), accesses.end(), [](const Placed& a, const Placed& b) {
      return std::tuple(a.place, !a.writes()) < std::tuple(b.place, !b.writes());
    });
  }

  std::vector<Placed> InSequence() const {
    std::vector<Placed> all = recent_;
    if (older_ != nullptr) {
      for (const auto& [component, reads] : *older_)
        all.insert(all.end(), reads.begin(), reads.end());
    }
    Sort(all);
    return all;
  }

  std::vector<Placed> recent_;    // in sequence: all writes, and reads
  std::shared_ptr<Reads> older_;  // other reads
  uint64_t mark_ = 0;
};

}  // namespace shardproof::graph
