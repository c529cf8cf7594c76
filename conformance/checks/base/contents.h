// contents.h: what do the bytes of a rank's memory mean, range by range?
//
// Each byte range carries what was put there: a parameter's elements of some version, a gradient as
// the set of contributions that were summed into it, a constant, poison, or something else. Copies
// and casts carry the meaning along.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof {

// One summand of a gradient: what a node computed on a rank for a microbatch of an entry call.
struct Contribution {
  int16_t call = 0, rank = 0, microbatch = 0, node = 0;
  int16_t times = 1;
  auto operator<=>(const Contribution&) const = default;
};

// Sets of contributions, each stored once. Set 0 is empty.
class ContributionSets {
 public:
  ContributionSets() { sets_.emplace_back(); }
  int32_t Of(const Contribution& one) { return Intern({one}); }
  int32_t Union(int32_t a, int32_t b);  // multiplicities add
  const std::vector<Contribution>& Get(int32_t set) const { return sets_[size_t(set)]; }

 private:
  int32_t Intern(std::vector<Contribution> set);
  std::vector<std::vector<Contribution>> sets_;
  std::map<std::vector<Contribution>, int32_t> ids_;
  std::map<std::pair<int32_t, int32_t>, int32_t> unions_;
};

struct Content {
  enum class Kind : uint8_t {
    kPoison,  // never written, freed or discarded
    kFill,    // a constant
    kParam,   // elements of a parameter; tag: entry call that made this version
    kGrad,    // a gradient of a parameter; tag: contribution set
    kMixed,   // a sum of things that do not belong together
    kOther
  };
  Kind kind = Kind::kPoison;
  uint8_t width = 4;  // bytes of an element
  int16_t instance = 0;
  int32_t param = -1;  // key
  int32_t tag = 0;
  int64_t element = 0;                      // logical index of the first element
  bool SameAs(const Content& other) const;  // apart from the element
  Content At(int64_t byte) const;           // the content byte bytes further on
};

// length bytes of one content, offset bytes into the range that was asked for.
struct Chunk {
  int64_t offset = 0, length = 0;
  Content content;
};

class BlockContents {
 public:
  explicit BlockContents(int64_t bytes = 0) : bytes_(bytes) {}
  int64_t bytes() const { return bytes_; }
  std::vector<Chunk> Get(int64_t offset, int64_t length) const;
  void Put(int64_t offset, const std::vector<Chunk>& chunks);
  void Put(int64_t offset, int64_t length, const Content& content);

 private:
  void Cut(int64_t at);
  int64_t bytes_;
  std::map<int64_t, std::pair<int64_t, Content>>
      pieces_;  // begin -> (end, content); gaps are poison
};

// Both lists cover the same elements (by count), x with elements of x_width bytes. Calls out for
// each common run: (offset in y bytes, length in y bytes, content of x there, content of y there).
void ZipChunks(const std::vector<Chunk>& x, int64_t x_length, const std::vector<Chunk>& y,
               int64_t y_length,
               const std::function<void(int64_t, int64_t, const Content&, const Content&)>& visit);

}  // namespace shardproof
