#include "conformance/checks/schedule/exchanges.h"

#include <numeric>
#include <set>

namespace shardproof::schedule {

namespace {

struct Holds {  // what a byte range was last written as
  int32_t table = -1, value = -1, microbatch = -1;
};

// One rank: follows values through memory in issue order.
class Walk {
 public:
  Walk(const Analysis& a, int32_t rank) : a_(a), rank_(rank), trace_(a.traces()[size_t(rank)]) {}

  std::vector<Exchange> Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == EventKind::kCompute) Compute(event);
      if (event.kind == EventKind::kCopy) Copy(event);
      if (event.kind == EventKind::kCollective && event.collective == SPF_ALL_TO_ALL_V && event.group >= 0) {
        AllToAll(static_cast<int64_t>(i), event);
      }
    }
    return std::move(out_);
  }

 private:
  void Put(const Range& range, const Holds& holds) {
    if (range.length <= 0) return;
    auto& block = blocks_[range.alloc];
    const int64_t end = range.offset + range.length;
    auto at = block.lower_bound(range.offset);
    if (at != block.begin()) {
      const auto before = std::prev(at);
      const auto [until, held] = before->second;
      if (until > range.offset) before->second.first = range.offset;
      if (until > end) block[end] = {until, held};
    }
    at = block.lower_bound(range.offset);
    while (at != block.end() && at->first < end) {
      if (at->second.first > end) block[end] = at->second;
      at = block.erase(at);
    }
    block[range.offset] = {end, holds};
  }
  const Holds* Get(const Range& range) const {
    const auto block = blocks_.find(range.alloc);
    if (block == blocks_.end()) return nullptr;
    auto at = block->second.upper_bound(range.offset);
    if (at == block->second.begin()) return nullptr;
    --at;
    return at->second.first > range.offset ? &at->second.second : nullptr;
  }

  void Compute(const Event& event) {
    const spf_uses& uses = a_.Facts(event.instance).Node(event.id, rank_).uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return;
    for (int32_t i = 0; i < uses.n; ++i) {
      const spf_use& use = uses.use[i];
      const bool value = use.table == SPF_IN_ACT || use.table == SPF_IN_DACT;
      if (value && (use.access & SPF_WRITE) != 0) {
        Put(trace_.ranges[event.ranges.begin + size_t(i)], {use.table, use.id, event.microbatch});
      }
    }
  }
  void Copy(const Event& event) {
    const Range* from = SendRange(trace_, event);
    const Range* to = RecvRange(trace_, event);
    if (from == nullptr || to == nullptr) return;
    if (const Holds* holds = Get(*from)) Put(*to, *holds);
  }

  std::vector<int64_t> Counts(Slice slice) const {
    return {trace_.numbers.begin() + slice.begin, trace_.numbers.begin() + slice.end};
  }

  void AllToAll(int64_t index, const Event& event) {
    Exchange exchange;
    exchange.rank = rank_;
    exchange.event = index;
    exchange.instance = event.instance;
    exchange.call = event.call;
    exchange.comm = trace_.groups[size_t(event.group)].comm;
    exchange.position = positions_[exchange.comm]++;
    exchange.send = Counts(event.send_counts);
    exchange.recv = Counts(event.recv_counts);
    const Range* send = SendRange(trace_, event);
    const Holds* holds = send == nullptr ? nullptr : Get(*send);
    const int32_t table = holds == nullptr ? -1 : holds->table;
    const int32_t value = holds == nullptr ? -1 : holds->value;
    if (holds != nullptr) exchange.microbatch = holds->microbatch;
    const InstanceFacts& facts = a_.Facts(event.instance);
    const spf_program& program = ProgramOf(facts, event.call, std::max(0, exchange.microbatch));
    for (int32_t n = 0; n < program.n_nodes && holds != nullptr; ++n) {
      const spf_node& node = program.nodes[n];
      if (node.kind != SPF_NODE_EXCHANGE) continue;
      for (const int phase : {SPF_FWD, SPF_BWD}) {
        const spf_use* from = UseOf(node, phase, SPF_READ);
        const spf_use* to = UseOf(node, phase, SPF_WRITE);
        if (from == nullptr || from->table != table || from->id != value) continue;
        exchange.node = node.id;
        exchange.backward = phase == SPF_BWD;
        exchange.own_bytes = true;
        const Range* recv = RecvRange(trace_, event);
        if (recv != nullptr && to != nullptr) Put(*recv, {to->table, to->id, exchange.microbatch});
      }
    }
    out_.push_back(std::move(exchange));
  }

  static const spf_use* UseOf(const spf_node& node, int phase, int access) {
    for (int32_t i = 0; i < node.uses[phase].n; ++i) {
      if ((node.uses[phase].use[i].access & access) != 0) return &node.uses[phase].use[i];
    }
    return nullptr;
  }
  const spf_program& ProgramOf(const InstanceFacts& facts, int32_t call, int32_t microbatch) const {
    const int64_t step = size_t(call) < facts.calls().size() ? std::max<int64_t>(0, facts.calls()[size_t(call)].step) : 0;
    const int64_t sample = int64_t{microbatch} * DpCpSize(facts.spec()) + std::max(0, facts.DataRank(rank_));
    return facts.model().Program(step, sample, facts.Place(rank_));
  }

  const Analysis& a_;
  const int32_t rank_;
  const Trace& trace_;
  std::map<int32_t, std::map<int64_t, std::pair<int64_t, Holds>>> blocks_;  // alloc -> begin -> (end, what)
  std::map<std::string, int64_t> positions_;
  std::vector<Exchange> out_;
};

// What the tables say of a node that is known.
void Complete(const Analysis& a, Exchange& exchange) {
  const InstanceFacts& facts = a.Facts(size_t(exchange.instance));
  const spf_node& node = facts.Node(exchange.node, exchange.rank);
  const spf_model& tables = facts.model().Tables(facts.Place(exchange.rank));
  const spf_value& value = tables.values[node.uses[SPF_FWD].use[0].id];
  exchange.row = std::max<int64_t>(1, value.row_elems);
  exchange.counts = value.dtype < SPF_BF16;
}

// By the label: the first exchange of the module, in the order of the phase, that has not run in this microbatch.
void FromLabel(const Analysis& a, Exchange& exchange, const std::set<std::tuple<int32_t, int32_t, int32_t, bool>>& ran) {
  const Event& event = a.traces()[size_t(exchange.rank)].events[size_t(exchange.event)];
  if (event.module < 0 || event.microbatch < 0) return;
  const InstanceFacts& facts = a.Facts(size_t(exchange.instance));
  const int64_t step = std::max<int64_t>(0, facts.calls()[size_t(exchange.call)].step);
  const int64_t sample = int64_t{event.microbatch} * DpCpSize(facts.spec()) + std::max(0, facts.DataRank(exchange.rank));
  const spf_program& program = facts.model().Program(step, sample, facts.Place(exchange.rank));
  for (const bool backward : {false, true}) {
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      const spf_node& node = program.nodes[backward ? program.n_nodes - 1 - i : i];
      const bool right = node.kind == SPF_NODE_EXCHANGE && node.module == event.module;
      if (!right || node.uses[backward ? SPF_BWD : SPF_FWD].n == 0) continue;
      if (ran.count({exchange.call, node.id, event.microbatch, backward}) != 0) continue;
      exchange.node = node.id;
      exchange.microbatch = event.microbatch;
      exchange.backward = backward;
      return;
    }
  }
}

}  // namespace

std::vector<std::vector<Exchange>> FindExchanges(const Analysis& a) {
  std::vector<std::vector<Exchange>> all;
  std::map<std::pair<std::string, int64_t>, const Exchange*> known;
  for (int32_t rank = 0; rank < a.ranks(); ++rank) all.push_back(Walk(a, rank).Run());
  for (const auto& of_rank : all) {
    for (const Exchange& exchange : of_rank) {
      if (exchange.node >= 0) known.try_emplace({exchange.comm, exchange.position}, &exchange);
    }
  }
  for (auto& of_rank : all) {
    std::set<std::tuple<int32_t, int32_t, int32_t, bool>> ran;
    for (Exchange& exchange : of_rank) {
      const auto peer = known.find({exchange.comm, exchange.position});
      if (exchange.node < 0 && peer != known.end()) {
        exchange.node = peer->second->node;
        exchange.microbatch = peer->second->microbatch;
        exchange.backward = peer->second->backward;
      }
      if (exchange.node < 0 && exchange.call >= 0) FromLabel(a, exchange, ran);
      if (exchange.node < 0) continue;
      Complete(a, exchange);
      exchange.again = !ran.insert({exchange.call, exchange.node, exchange.microbatch, exchange.backward}).second;
    }
  }
  return all;
}

std::string Text(const Analysis& a, const Exchange& exchange) {
  if (exchange.node < 0) return "all-to-all " + std::to_string(exchange.position) + " on " + exchange.comm;
  const spf_node& node = a.Facts(size_t(exchange.instance)).Node(exchange.node, exchange.rank);
  return std::string(node.name) + (exchange.backward ? " BWD" : " FWD") + ", microbatch " +
         std::to_string(exchange.microbatch);
}

}  // namespace shardproof::schedule
