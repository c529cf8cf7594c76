#include "conformance/checks/base/replay_order.h"

namespace shardproof {

class ReplayOrder::Keeper : public ReplayVisitor {
 public:
  explicit Keeper(ReplayOrder& order) : order_(order) {}
  void OnLocal(int32_t rank, int64_t event) override {
    order_.members_.push_back({rank, event});
    order_.counts_.push_back(0);
  }
  void OnCollective(const std::vector<Member>& members) override {
    order_.members_.insert(order_.members_.end(), members.begin(), members.end());
    order_.counts_.push_back(static_cast<int32_t>(members.size()));
  }

 private:
  ReplayOrder& order_;
};

ReplayOrder::ReplayOrder(const std::vector<Trace>& traces) {
  Keeper keeper(*this);
  result_ = Replay(traces, keeper);
}

void ReplayOrder::Visit(ReplayVisitor& visitor) const {
  std::vector<ReplayVisitor::Member> members;
  auto next = members_.begin();
  for (const int32_t count : counts_) {
    if (count == 0) {
      visitor.OnLocal(next->rank, next->event);
      ++next;
      continue;
    }
    members.assign(next, next + count);
    visitor.OnCollective(members);
    next += count;
  }
}

}  // namespace shardproof
