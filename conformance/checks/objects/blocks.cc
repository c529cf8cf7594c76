// Blocks: allocated once, freed once, and in between touched inside their bytes.
#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/objects/extent.h"
#include "conformance/checks/objects/objects.h"

namespace shardproof {

namespace {

class Blocks {
 public:
  Blocks(const Analysis& a, int32_t rank, FindingSink& sink)
      : a_(a), trace_(a.trace(rank)), sink_(sink) {}

  void Run() {
    for (const Event& event : trace_.events) {
      if (event.kind == EventKind::kAlloc) Alloc(event);
      if (GivesBack(event.kind)) GiveBack(event);
      for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i)
        Touch(event, trace_.ranges[i]);
      Lengths(event);
      ++index_;
    }
  }

 private:
  struct Block {
    int64_t bytes = 0, allocated = 0;
    int64_t freed = -1, released = -1;  // events
    bool pinned = false;
  };

  void Add(std::string expected, std::string seen, std::string message) {
    sink_.Add(a_.At("GE-18", trace_.rank, index_), std::move(expected), std::move(seen),
              std::move(message));
  }
  static std::string Name(int32_t alloc) { return "block " + std::to_string(alloc); }
  static std::string AtEvent(int64_t event) { return " at event " + std::to_string(event); }

  Block BlockOf(const Event& event) const {
    return {event.count, index_, /*freed=*/-1, /*released=*/-1, event.id == SPF_PINNED};
  }

  void Alloc(const Event& event) {
    const auto [at, fresh] = blocks_.try_emplace(event.alloc, BlockOf(event));
    if (fresh) return;
    Add("a number that no block had before",
        Name(event.alloc) + ", allocated" + AtEvent(at->second.allocated) + " already",
        "a block is allocated under the number of another one: numbers are never used again, not "
        "even after the free");
    at->second = BlockOf(event);
  }

  // A pool frees what was released; nothing else comes after a release.
  void GiveBack(const Event& event) {
    const auto block = blocks_.find(event.alloc);
    if (block == blocks_.end()) {
      Add("a block that was allocated", Name(event.alloc) + ", which no alloc has made",
          "a block is freed that was never allocated");
      return;
    }
    Block& of = block->second;
    const bool frees = event.kind == EventKind::kFree;
    if (of.freed >= 0) {
      Add("each block freed once", Name(event.alloc) + ", freed" + AtEvent(of.freed) + " already",
          frees ? "a block is freed twice" : "a block is released after it was freed");
    } else if (!frees && of.released >= 0) {
      Add("each block released once",
          Name(event.alloc) + ", released" + AtEvent(of.released) + " already",
          "a block is released twice");
    } else {
      (frees ? of.freed : of.released) = index_;
    }
  }

  void Touch(const Event& event, const Range& range) {
    if (range.length == 0 || range.alloc < 0) return;
    const auto block = blocks_.find(range.alloc);
    if (block == blocks_.end()) return TouchNone(range);
    const Block& of = block->second;
    if (event.kind == EventKind::kHostAccess && !of.pinned) {
      Add("pinned host memory", Bytes(range) + ", which is device memory",
          "the host touches device memory: copy it to a pinned block, synchronise, and touch that");
    }
    if (range.access == 0) {
      Add("access 1 (read), 2 (write) or 3 (both)", Bytes(range) + " with access 0",
          "a range says neither that it is read nor that it is written");
    }
    if (of.released >= 0) {
      Add("work issued before the release" + AtEvent(of.released), Bytes(range) + ", after it",
          "work is issued on a block that was given back to its pool: keep it until its last use "
          "is "
          "issued");
    } else if (of.freed >= 0) {
      Add("work issued before the free" + AtEvent(of.freed), Bytes(range) + ", after it",
          "work is issued on a block that was freed: free it after its last use is issued");
    } else if (range.offset + range.length > of.bytes) {
      Add("bytes within the block's " + std::to_string(of.bytes), Bytes(range),
          "work touches bytes outside of its block");
    }
  }

  void TouchNone(const Range& range) {
    if (!reported_.insert(range.alloc).second) return;
    Add("a block that was allocated before", Bytes(range) + ", which no alloc before this has made",
        "work touches a block that was never allocated");
  }

  static std::string Bytes(const Range& range) {
    return "bytes [" + std::to_string(range.offset) + ", " +
           std::to_string(range.offset + range.length) + ") of " + Name(range.alloc);
  }

  // Of the row's ranges, as many bytes as it must read and write.
  void Lengths(const Event& event) {
    int64_t read = 0, written = 0;
    for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
      const Range& range = trace_.ranges[i];
      if ((range.access & kRead) != 0) read = Capped(read + Capped(range.length));
      if ((range.access & kWrite) != 0) written = Capped(written + Capped(range.length));
    }
    if (event.kind == EventKind::kCopy) {
      if (!SaysWhatWhere(event) || read != written || read == 0) {
        Add("ranges that are read, then ranges that are written, as many bytes in all",
            std::to_string(event.ranges.size()) + " ranges, " + std::to_string(read) +
                " bytes read and " + std::to_string(written) + " written",
            "a copy does not say what it copies where");
      }
      return;
    }
    const std::optional<Extent> needed = ExtentOf(trace_, event);
    if (!needed) return;
    Enough("reads", Capped(needed->read), read);
    Enough("writes", Capped(needed->write), written);
  }

  static constexpr bool Reads(const Range& range) { return range.access == kRead; }
  // Of a copy: all that is read, then all that is written.
  bool SaysWhatWhere(const Event& event) const {
    const auto begin = trace_.ranges.begin() + event.ranges.begin,
               end = trace_.ranges.begin() + event.ranges.end;
    const auto written = std::find_if_not(begin, end, Reads);
    return std::all_of(written, end, [](const Range& range) { return range.access == kWrite; });
  }

  // Far beyond all memory, and sums of two fit.
  static int64_t Capped(int64_t bytes) {
    constexpr int64_t kMost = int64_t{1} << 40;
    return bytes < kMost ? bytes : kMost;
  }

  void Enough(const std::string& does, int64_t needed, int64_t seen) {
    if (seen >= needed) return;
    Add("ranges of " + std::to_string(needed) + " bytes that it " + does,
        std::to_string(seen) + " bytes",
        "its ranges are shorter than what it " + does +
            ": elements times bytes of the dtype, as shardproof.h counts them for the operation");
  }

  const Analysis& a_;
  const Trace& trace_;
  FindingSink& sink_;
  int64_t index_ = 0;
  std::unordered_map<int32_t, Block> blocks_;
  std::set<int32_t> reported_;  // blocks that were never allocated
};

}  // namespace

void FollowBlocks(const Analysis& a, int32_t rank, FindingSink& sink) {
  Blocks(a, rank, sink).Run();
}

}  // namespace shardproof
