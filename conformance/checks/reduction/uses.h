// uses.h: which uses of a parameter did a rank compute, and which did each reduction carry?
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/checks/base/carried.h"

namespace shardproof {

// spf_dtype of a knob.
inline int32_t SpfDtype(const Choice<KnobDtype>& dtype) {
  return dtype == KnobDtype::kBf16 ? SPF_BF16 : SPF_F32;
}

// Of what the entry call itself has put in, all is this rank's own. What an earlier call left there
// (FS-22) says nothing of what this one does.
bool ContributesAlone(const std::vector<Contribution>& set, int32_t rank, int32_t call);

class UsesOf {
 public:
  using Place = std::tuple<int, int32_t, int32_t>;  // instance, call, key
  using Where = std::pair<Place, int32_t>;          // with the microbatch
  enum class Fate : uint8_t { kLater, kLost, kApart };

  // What becomes of the uses of a parameter that one reduction lacks: computed before it and lost,
  // reduced apart, or still to be computed.
  Fate Missing(const Where& where, const std::set<int32_t>& want, const std::set<int32_t>& seen,
               int64_t reduction) const;

  void Computed(const Where& where, int32_t node, int64_t event);
  void Reduced(const Where& where, const std::set<int32_t>& nodes) {
    reduced_[where].insert(nodes);
  }

 private:
  std::map<Where, std::map<int32_t, int64_t>> computed_;  // node -> event that adds
  std::map<Where, std::set<std::set<int32_t>>> reduced_;  // nodes of each reduction
};

// REQUIRES: a.has_flow(). carried: all that the rank carried.
UsesOf UsesIn(const Analysis& a, int32_t rank, const std::vector<Carried>& carried);

}  // namespace shardproof
