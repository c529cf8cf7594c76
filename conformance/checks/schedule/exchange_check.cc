// All-to-alls of a group: the same sequence on all members, pieces that fit, backward as the way
// back.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "conformance/checks/schedule/schedule.h"
#include "conformance/common/dtype.h"
#include "conformance/model/network.h"

namespace shardproof::schedule {

namespace {

int64_t Sum(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

std::string CountsText(const std::vector<int64_t>& counts) {
  std::string text;
  for (const int64_t count : counts) text += (text.empty() ? "[" : ",") + std::to_string(count);
  return text.empty() ? "[]" : text + "]";
}

class Exchanges {
 public:
  Exchanges(const Facts& facts, CheckResult& result, FindingSink& sink)
      : facts_(facts), result_(result), sink_(sink) {}

  void Run() {
    for (const auto& of_rank : facts_.exchanges()) {
      for (const Exchange& exchange : of_rank) {
        members_[{exchange.comm, exchange.position}].push_back(&exchange);
        if (exchange.node >= 0 && !exchange.again) {
          of_node_[{exchange.rank, exchange.instance, exchange.call, exchange.microbatch,
                    exchange.node, exchange.backward}] = &exchange;
        }
      }
    }
    if (members_.empty()) return;
    for (const auto& [place, members] : members_) JudgeMembers(members);
    for (const auto& of_rank : facts_.exchanges()) {
      for (const Exchange& exchange : of_rank) JudgeRows(exchange);
    }
    for (const Step& step : facts_.steps()) {
      if (step.end >= 0) JudgeConservation(step);
    }
  }

 private:
  using Place = std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t, bool>;

  Finding At(const char* requirement, const Exchange& exchange) const {
    return facts_.a().At(requirement, exchange.rank, exchange.event);
  }
  void Add(const char* requirement, const Exchange& exchange, std::string expected,
           std::string seen, std::string message) {
    sink_.Add(At(requirement, exchange), std::move(expected), std::move(seen),
              std::move(message) + " (" + Text(facts_.a(), exchange) + ")");
  }
  const std::vector<int32_t>& Ranks(const Exchange& exchange) const {
    const Trace& trace = facts_.a().traces()[size_t(exchange.rank)];
    return trace.groups[size_t(trace.events[size_t(exchange.event)].group)].world_ranks;
  }
  size_t Index(const Exchange& exchange) const {
    const auto& ranks = Ranks(exchange);
    return static_cast<size_t>(std::find(ranks.begin(), ranks.end(), exchange.rank) -
                               ranks.begin());
  }

  // One operation, as its members issued it.
  void JudgeMembers(const std::vector<const Exchange*>& members) {
    Judge(result_, {"EP-25", "EP-26"});
    const Exchange& first = *members.front();
    if (members.size() < Ranks(first).size() && facts_.a().ended_well()) {
      Add("EP-26", first, std::to_string(Ranks(first).size()) + " members",
          std::to_string(members.size()), "some members of the group have fewer all-to-alls");
    }
    for (const Exchange* member : members) {
      if (std::tie(member->microbatch, member->backward) !=
              std::tie(first.microbatch, first.backward) ||
          !SameNode(*member, first)) {
        Add("EP-26", *member,
            Text(facts_.a(), first) + ", as on rank " + std::to_string(first.rank),
            Text(facts_.a(), *member),
            "members of a group move different values in the same all-to-all");
      }
      for (const Exchange* other : members) JudgePieces(*member, *other);
    }
  }
  bool SameNode(const Exchange& a, const Exchange& b) const {
    if (a.node < 0 || b.node < 0) return a.node == b.node;
    const InstanceFacts& facts = facts_.a().Facts(size_t(a.instance));
    return std::string(facts.Node(a.node, a.rank).name) == facts.Node(b.node, b.rank).name;
  }
  void JudgePieces(const Exchange& from, const Exchange& to) {
    const size_t me = Index(from), you = Index(to);
    if (you >= from.send.size() || me >= to.recv.size() || from.send[you] == to.recv[me]) return;
    Add("EP-25", from,
        std::to_string(to.recv[me]) + " elements, as rank " + std::to_string(to.rank) + " expects",
        std::to_string(from.send[you]) + " elements to rank " + std::to_string(to.rank),
        "what one member sends is not what the other one expects");
  }

  const Exchange* Find(const Exchange& like, int32_t node, bool backward) const {
    const auto at =
        of_node_.find({like.rank, like.instance, like.call, like.microbatch, node, backward});
    return at == of_node_.end() ? nullptr : at->second;
  }

  // Whole rows, as many as the tensors have; backward is the way back of the same microbatch.
  void JudgeRows(const Exchange& exchange) {
    if (exchange.node < 0) return;
    const Trace& trace = facts_.a().traces()[size_t(exchange.rank)];
    const Event& event = trace.events[size_t(exchange.event)];
    const auto width = static_cast<int64_t>(DtypeBytes(event.dtype));
    for (const bool sends : {true, false}) {
      const Range* range = sends ? SendRange(trace, event) : RecvRange(trace, event);
      const int64_t sum = Sum(sends ? exchange.send : exchange.recv);
      const bool whole = std::all_of((sends ? exchange.send : exchange.recv).begin(),
                                     (sends ? exchange.send : exchange.recv).end(),
                                     [&](int64_t count) { return count % exchange.row == 0; });
      if (whole && (range == nullptr ? 0 : range->length) == sum * width) continue;
      Add("EP-25", exchange,
          "whole rows of " + std::to_string(exchange.row) + " elements that add up to the tensor",
          CountsText(sends ? exchange.send : exchange.recv),
          "splits do not cover the rows of the tensor");
    }
    if (!exchange.backward) return;
    const Exchange* forward = Find(exchange, exchange.node, false);
    if (forward == nullptr) return;
    Judge(result_, {"EP-27"});
    if (forward->send == exchange.recv && forward->recv == exchange.send) return;
    const bool unswapped = forward->send == exchange.send && forward->recv == exchange.recv;
    const Exchange* theirs = OtherMicrobatch(exchange);
    Add(unswapped ? "EP-25" : "EP-27", exchange,
        "sends " + CountsText(forward->recv) + ", receives " + CountsText(forward->send),
        "sends " + CountsText(exchange.send) + ", receives " + CountsText(exchange.recv),
        unswapped ? "backward has the splits of forward, not swapped"
        : theirs == nullptr
            ? "backward has other splits than forward of the same microbatch"
            : "backward has the splits of microbatch " + std::to_string(theirs->microbatch) +
                  ": the split sizes of its own forward were overwritten");
  }
  const Exchange* OtherMicrobatch(const Exchange& exchange) const {
    for (const auto& [place, other] : of_node_) {
      const bool same = other->rank == exchange.rank && other->call == exchange.call &&
                        other->node == exchange.node && other->instance == exchange.instance &&
                        !other->backward;
      if (same && other->microbatch != exchange.microbatch && other->send == exchange.recv)
        return other;
    }
    return nullptr;
  }

  // In forward: as many rows come back as were sent away; tokens and probabilities travel together.
  void JudgeConservation(const Step& step) {
    const InstanceSpec& spec = facts_.spec(size_t(step.instance));
    for (size_t pass = 0; pass < step.nodes.size(); ++pass) {
      const Nodes& nodes = *step.nodes[pass];
      const int32_t m = static_cast<int32_t>(pass) / spec.chunks;
      for (const int32_t layer : nodes.layers()) {
        const auto* ep = facts_.a().Facts(size_t(step.instance)).List("ep", step.rank);
        if (!nodes.IsMoe(layer) || ep == nullptr || ep->size() < 2) continue;
        JudgeAllThere(step, nodes, m, layer);
        JudgeLayer(step, nodes, m, layer);
      }
    }
  }
  const Exchange* Of(const Step& step, int32_t m, int32_t node, bool backward) const {
    const auto at = of_node_.find({step.rank, step.instance, step.call, m, node, backward});
    return at == of_node_.end() ? nullptr : at->second;
  }
  static std::vector<int64_t> Rows(const Exchange& exchange, bool send) {
    std::vector<int64_t> rows = send ? exchange.send : exchange.recv;
    for (int64_t& count : rows) count /= exchange.row;
    return rows;
  }

  void JudgeLayer(const Step& step, const Nodes& nodes, int32_t m, int32_t layer) {
    const Exchange* dispatch = nullptr;
    for (const ScheduleNode schedule_node : {ScheduleNode::kDispatch, ScheduleNode::kCombine}) {
      for (const spf_node* node : nodes.Of(schedule_node, layer)) {
        if (node->kind != SPF_NODE_EXCHANGE) continue;
        const Exchange* exchange = Of(step, m, node->id, false);
        if (exchange == nullptr) continue;
        Judge(result_, {"EP-28"});
        if (dispatch == nullptr) {
          dispatch = exchange;
          JudgeAmount(step, *exchange);
          continue;
        }
        const bool back = schedule_node == ScheduleNode::kCombine;
        const bool sent = Rows(*exchange, true) == Rows(*dispatch, !back);
        if (sent && Rows(*exchange, false) == Rows(*dispatch, back)) continue;
        Add("EP-28", *exchange,
            back ? "the way back of the dispatch: sends " + CountsText(Rows(*dispatch, false))
                 : "the rows of the dispatch: sends " + CountsText(Rows(*dispatch, true)),
            "sends " + CountsText(Rows(*exchange, true)) + " rows",
            "rows are lost or made up between the ranks");
      }
    }
  }
  // Without a capacity each token travels k times.
  void JudgeAmount(const Step& step, const Exchange& dispatch) {
    const InstanceSpec& spec = facts_.spec(size_t(step.instance));
    if (spec.model.moe.capacity_percent > 0) return;
    const int64_t rows = MoeSizesOf(spec.model).tokens * spec.model.moe.top_k;
    if (Sum(Rows(dispatch, true)) == rows) return;
    Add("EP-28", dispatch,
        std::to_string(rows) + " rows leave the rank: each token to " +
            std::to_string(spec.model.moe.top_k) + " experts",
        std::to_string(Sum(Rows(dispatch, true))),
        "tokens are lost or doubled on the way to the experts");
  }

  // With no rows to move or compute, everything is issued all the same.
  void JudgeAllThere(const Step& step, const Nodes& nodes, int32_t m, int32_t layer) {
    for (const ScheduleNode schedule_node :
         {ScheduleNode::kDispatch, ScheduleNode::kMlp, ScheduleNode::kCombine}) {
      for (const spf_node* node : nodes.Of(schedule_node, layer)) {
        for (const bool backward : {false, true}) {
          if (node->uses[backward ? SPF_BWD : SPF_FWD].n == 0 || (backward && !step.train))
            continue;
          const bool there = node->kind == SPF_NODE_EXCHANGE
                                 ? Of(step, m, node->id, backward) != nullptr
                                 : Computed(step, *node, m, backward);
          Judge(result_, {"EP-29"});
          if (there) continue;
          Finding finding = facts_.a().At("EP-29", step.rank, step.begin);
          finding.expected = std::string(node->name) + (backward ? " BWD" : " FWD") +
                             ", microbatch " + std::to_string(m);
          finding.seen = "it is not issued";
          finding.message =
              std::string(node->name) +
              " is left out: also with no rows every exchange and every expert takes part";
          sink_.Add(std::move(finding));
        }
      }
    }
  }
  bool Computed(const Step& step, const spf_node& node, int32_t m, bool backward) const {
    const Trace& trace = facts_.a().traces()[size_t(step.rank)];
    bool dgrad = node.uses[SPF_DGRAD].n == 0, wgrad = node.uses[SPF_WGRAD].n == 0;
    for (int64_t i = step.begin; i < step.end; ++i) {
      const Event& event = trace.events[size_t(i)];
      if (event.kind != EventKind::kCompute || event.id != node.id || event.microbatch != m)
        continue;
      if (!backward && event.phase == SPF_FWD) return true;
      dgrad |= event.phase == SPF_BWD || event.phase == SPF_DGRAD;
      wgrad |= event.phase == SPF_BWD || event.phase == SPF_WGRAD;
    }
    return backward && dgrad && wgrad;
  }

  const Facts& facts_;
  CheckResult& result_;
  FindingSink& sink_;
  std::map<std::pair<std::string, int64_t>, std::vector<const Exchange*>> members_;
  std::map<Place, const Exchange*> of_node_;
};

}  // namespace

CheckResult CheckExchanges(const Facts& facts) {
  CheckResult result;
  FindingSink sink(result);
  Exchanges(facts, result, sink).Run();
  return result;
}

}  // namespace shardproof::schedule
