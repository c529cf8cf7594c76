#include "conformance/checks/program/reachability.h"

namespace shardproof::graph {

bool Reachability::Reaches(uint32_t from, uint32_t to) {
  const uint32_t limit = order_.position[to];
  if (order_.position[from] >= limit) return false;
  if (!labels_ && passed_ > graph_.nodes()) labels_.emplace(graph_, order_);
  // Behind a cycle there are no labels.
  const bool labelled = labels_ && limit != kUnplaced;
  if (labelled && !labels_->MayReach(from, to)) return false;
  ++round_;
  stack_.assign(1, from);
  while (!stack_.empty()) {
    const uint32_t v = stack_.back();
    stack_.pop_back();
    ++passed_;
    for (const uint32_t* next = graph_.begin(v); next != graph_.end(v); ++next) {
      if (*next == to) return true;
      if (order_.position[*next] >= limit || seen_[*next] == round_) continue;
      seen_[*next] = round_;
      if (!labelled || labels_->MayReach(*next, to)) stack_.push_back(*next);
    }
  }
  return false;
}

}  // namespace shardproof::graph
