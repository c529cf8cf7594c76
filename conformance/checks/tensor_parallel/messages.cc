#include "conformance/checks/tensor_parallel/messages.h"

#include <vector>

#include "conformance/common/at.h"

namespace shardproof {

class Messages::Matched : public ReplayVisitor {
 public:
  Matched(const Analysis& a, Messages& messages) : a_(a), messages_(messages) {}
  void OnLocal(int32_t, int64_t) override {}
  void OnCollective(const std::vector<Member>& members) override {
    for (size_t m = 0; m < members.size(); ++m) {
      if (members[m].rank < 0) return;
    }
    const Event& first = EventOf(members[0]);
    const bool broadcast = first.collective == SPF_BROADCAST;
    if (!broadcast && first.collective != SPF_SEND && first.collective != SPF_RECV) return;
    const size_t root = broadcast ? static_cast<size_t>(first.peer) : 0;
    if (root >= members.size()) return;
    for (size_t m = 0; m < members.size(); ++m) {
      if (m != root) Add(members[root], members[m]);
    }
  }

 private:
  const Event& EventOf(const Member& m) const { return At(a_.trace(m.rank).events, m.event); }
  // Ranks of one stage have the same tables.
  void Add(const Member& sender, const Member& receiver) {
    const uint16_t instance = EventOf(receiver).instance;
    if (instance >= a_.n_instances() || EventOf(sender).instance != instance) return;
    const InstanceFacts& facts = a_.Facts(instance);
    if (!facts.InGrid(sender.rank) || !facts.InGrid(receiver.rank)) return;
    if (facts.Place(sender.rank).pp != facts.Place(receiver.rank).pp) return;
    messages_.sender_of_[{receiver.rank, receiver.event}] = sender;
    messages_.senders_.insert({sender.rank, sender.event});
  }

  const Analysis& a_;
  Messages& messages_;
};

Messages::Messages(const Analysis& a) {
  if (!a.has_flow()) return;
  Matched matched(a, *this);
  a.flow().order().Visit(matched);
}

const Messages::Member* Messages::SenderOf(int32_t rank, int64_t event) const {
  const auto at = sender_of_.find({rank, event});
  return at == sender_of_.end() ? nullptr : &at->second;
}

}  // namespace shardproof
