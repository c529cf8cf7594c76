#include "conformance/checks/schedule/exchanges.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "conformance/checks/base/range_map.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof::schedule {

namespace {

// A value (or its gradient) of a microbatch: what bytes were last written as.
struct Holds {
  int32_t table = -1, value = -1, microbatch = -1;
  bool known() const { return table >= 0; }
  auto operator<=>(const Holds&) const = default;
};

const spf_use* UseOf(const spf_node& node, int phase, int access) {
  for (int32_t i = 0; i < node.uses[phase].n; ++i) {
    if ((node.uses[phase].use[i].access & access) != 0) return &node.uses[phase].use[i];
  }
  return nullptr;
}

const spf_program& ProgramOf(const InstanceFacts& facts, int32_t rank, int32_t call,
                             int32_t microbatch) {
  const bool known = call >= 0 && size_t(call) < facts.calls().size();
  const int64_t step = known ? std::max<int64_t>(0, facts.CallAt(call).step) : 0;
  const int64_t sample =
      int64_t{microbatch} * DpCpSize(facts.spec()) + std::max(0, facts.DataRank(rank));
  return facts.model().Program(step, sample, facts.Place(rank));
}

// One rank: follows values through memory in issue order.
class Walk {
 public:
  Walk(const Analysis& a, int32_t rank) : a_(a), rank_(rank), trace_(a.trace(rank)) {
    for (size_t i = 0; i < a.n_instances(); ++i) FindExchanged(i);
  }

  std::vector<Exchange> Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i)
      Visit(static_cast<int64_t>(i), trace_.events[i]);
    return std::move(out_);
  }

 private:
  // What exchange nodes send, forward and backward.
  void FindExchanged(size_t instance) {
    const InstanceFacts& facts = a_.Facts(instance);
    const spf_model& tables = facts.model().Tables(facts.Place(rank_));
    auto& exchanged = exchanged_.emplace_back();
    for (int32_t n = 0; n < facts.node_count(rank_); ++n) {
      const spf_node& node = facts.Node(n, rank_);
      for (const int phase : {SPF_FWD, SPF_BWD}) {
        const spf_use* sent =
            node.kind == SPF_NODE_EXCHANGE ? UseOf(node, phase, SPF_READ) : nullptr;
        if (sent != nullptr)
          exchanged[{sent->table, sent->id}] = IsFloating(tables.values[sent->id].dtype);
      }
    }
  }

  void Visit(int64_t index, const Event& event) {
    switch (event.kind) {
      case EventKind::kFree:
      case EventKind::kRelease:
        bytes_.EraseBlock(event.alloc);
        return;
      case EventKind::kCompute:
        return Compute(event);
      case EventKind::kCopy:
        return Copy(event);
      case EventKind::kLaunch:
        return Launch(event);
      case EventKind::kCollective:
        if (event.collective == SPF_ALL_TO_ALL_V && event.group >= 0) return AllToAll(index, event);
        return Overwrite(event);
      case EventKind::kInit:
      case EventKind::kHostAccess:
        return Overwrite(event);
      default:
        return;
    }
  }

  void Overwrite(const Event& event) { bytes_.Overwrite(trace_, event); }

  void Compute(const Event& event) {
    Overwrite(event);
    const spf_uses& uses = a_.Facts(event.instance).Node(event.id, rank_).uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return;
    for (int32_t i = 0; i < uses.n; ++i) {
      const spf_use& use = uses.use[i];
      const bool value = use.table == SPF_IN_ACT || use.table == SPF_IN_DACT;
      const Range& range = trace_.ranges[event.ranges.begin + size_t(i)];
      if (value && (use.access & SPF_WRITE) != 0)
        bytes_.Put(range, {use.table, use.id, event.microbatch});
    }
  }
  void Copy(const Event& event) {
    for (const auto& [from, to] : CopiedRuns(trace_, event)) Move(from, to);
  }
  // With a cast lengths differ.
  void Move(const Range& from, const Range& to) {
    const auto pieces = bytes_.Get(from);
    bytes_.Erase(to);
    const auto scaled = [&](int64_t byte) {
      return to.offset + (byte - from.offset) * to.length / from.length;
    };
    for (const auto& piece : pieces)
      bytes_.Put(to.alloc, scaled(piece.begin), scaled(piece.end), piece.value);
  }

  // Launches by which an engine packs, unpacks or adds up rows: what is written holds what was read
  // if that is one value. Others leave bytes that are no value.
  void Launch(const Event& event) {
    const Range* ranges = trace_.ranges.data() + event.ranges.begin;
    if (event.id == SPF_K_AXPBY && event.ranges.size() >= 2) {
      const Range &x = ranges[0], &y = ranges[1];
      const bool adds = (y.access & kRead) != 0 && bytes_.Get(y).size() > 0;
      if (!adds) return Move(x, y);
      const Holds one = Sole(event.instance, {x});
      if (!one.known() || one != Sole(event.instance, {y})) bytes_.Erase(y);
    } else if (event.id == SPF_K_CUSTOM) {
      const Holds source = Sole(event.instance, {ranges, ranges + event.ranges.size()});
      Overwrite(event);
      for (uint32_t i = 0; source.known() && i < event.ranges.size(); ++i) {
        if ((ranges[i].access & kWrite) != 0) bytes_.Put(ranges[i], source);
      }
    } else {
      Overwrite(event);
    }
  }
  // The one exchanged value that is read; tables of counts may be read beside activations.
  Holds Sole(size_t instance, const std::vector<Range>& ranges) const {
    std::set<Holds> activations, counts;
    for (const Range& range : ranges) {
      if ((range.access & kRead) == 0) continue;
      for (const auto& piece : bytes_.Get(range)) {
        const auto known = exchanged_[instance].find({piece.value.table, piece.value.value});
        if (known != exchanged_[instance].end())
          (known->second ? activations : counts).insert(piece.value);
      }
    }
    const std::set<Holds>& found = activations.empty() ? counts : activations;
    return found.size() == 1 ? *found.begin() : Holds{};
  }

  void AllToAll(int64_t index, const Event& event) {
    const auto counts = [&](Slice slice) {
      return std::vector<int64_t>(trace_.numbers.begin() + slice.begin,
                                  trace_.numbers.begin() + slice.end);
    };
    Exchange exchange;
    exchange.rank = rank_;
    exchange.event = index;
    exchange.instance = event.instance;
    exchange.call = event.call;
    exchange.comm = At(trace_.groups, event.group).comm;
    exchange.position = positions_[exchange.comm]++;
    exchange.send = counts(event.send_counts);
    exchange.recv = counts(event.recv_counts);
    const Range* send = SendRange(trace_, event);
    const Range* recv = RecvRange(trace_, event);
    const int64_t elements =
        std::accumulate(exchange.send.begin(), exchange.send.end(), int64_t{0});
    exchange.sends = elements > 0 || (send != nullptr && send->length > 0);
    const Holds sent = send == nullptr ? Holds{} : Sole(event.instance, {*send});
    Overwrite(event);
    const InstanceFacts& facts = a_.Facts(event.instance);
    const spf_program& program = ProgramOf(facts, rank_, event.call, std::max(0, sent.microbatch));
    for (int32_t n = 0; n < program.n_nodes && sent.known(); ++n) {
      const spf_node& node = program.nodes[n];
      if (node.kind != SPF_NODE_EXCHANGE) continue;
      for (const int phase : {SPF_FWD, SPF_BWD}) {
        const spf_use* from = UseOf(node, phase, SPF_READ);
        const spf_use* to = UseOf(node, phase, SPF_WRITE);
        if (from == nullptr || from->table != sent.table || from->id != sent.value) continue;
        exchange.node = node.id;
        exchange.microbatch = sent.microbatch;
        exchange.backward = phase == SPF_BWD;
        if (recv != nullptr && to != nullptr)
          bytes_.Put(*recv, {to->table, to->id, sent.microbatch});
      }
    }
    out_.push_back(std::move(exchange));
  }

  const Analysis& a_;
  const int32_t rank_;
  const Trace& trace_;
  RangeMap<Holds> bytes_;
  std::vector<std::map<std::pair<int32_t, int32_t>, bool>>
      exchanged_;  // by instance: (table, value) -> activations
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

using Ran =
    std::set<std::tuple<int32_t, int32_t, int32_t, bool>>;  // (call, node, microbatch, backward)

// By the label: the first exchange of the module, in the order of the phase, that has not run in
// this microbatch.
void FromLabel(const Analysis& a, Exchange& exchange, const Ran& ran) {
  const Event& event = At(a.trace(exchange.rank).events, exchange.event);
  if (event.module < 0 || event.microbatch < 0) return;
  const InstanceFacts& facts = a.Facts(size_t(exchange.instance));
  const spf_program& program = ProgramOf(facts, exchange.rank, exchange.call, event.microbatch);
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

// The same all-to-all on all members.
struct Together {
  const Exchange* known = nullptr;
  bool sends = false;  // some member
};

}  // namespace

std::vector<std::vector<Exchange>> FindExchanges(const Analysis& a) {
  std::vector<std::vector<Exchange>> all;
  for (int32_t rank = 0; rank < a.ranks(); ++rank) all.push_back(Walk(a, rank).Run());
  std::map<std::pair<std::string, int64_t>, Together> places;
  for (const auto& of_rank : all) {
    for (const Exchange& exchange : of_rank) {
      Together& place = places[{exchange.comm, exchange.position}];
      if (exchange.node >= 0 && place.known == nullptr) place.known = &exchange;
      place.sends |= exchange.sends;
    }
  }
  for (auto& of_rank : all) {
    Ran ran;
    for (Exchange& exchange : of_rank) {
      const Together& place = places.at({exchange.comm, exchange.position});
      if (exchange.node < 0 && !exchange.sends && place.known != nullptr) {
        exchange.node = place.known->node;
        exchange.microbatch = place.known->microbatch;
        exchange.backward = place.known->backward;
      }
      if (exchange.node < 0 && !place.sends && exchange.call >= 0) FromLabel(a, exchange, ran);
      if (exchange.node < 0) continue;
      Complete(a, exchange);
      exchange.again =
          !ran.insert({exchange.call, exchange.node, exchange.microbatch, exchange.backward})
               .second;
    }
  }
  return all;
}

std::string Text(const Analysis& a, const Exchange& exchange) {
  if (exchange.node < 0)
    return "all-to-all " + std::to_string(exchange.position) + " on " + exchange.comm;
  const spf_node& node = a.Facts(size_t(exchange.instance)).Node(exchange.node, exchange.rank);
  return std::string(node.name) + (exchange.backward ? " BWD" : " FWD") + ", microbatch " +
         std::to_string(exchange.microbatch);
}

}  // namespace shardproof::schedule
