// Values of microbatches: rows, memory from the first use to the last, all-to-alls.
#include <algorithm>
#include <numeric>

#include "conformance/checks/base/flow.h"
#include "conformance/checks/testing/mini_memory.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/model/network.h"

namespace shardproof {

using schedule::Nodes;
using schedule::ScheduleNode;
using schedule::Side;

void MiniMemory::CountUsers(int32_t m) {
  const spf_program& program = Program(m);
  const Nodes nodes(tables(), program);
  const bool apart = spec_.delay_wgrad || f_.weights_apart;
  for (int32_t i = 0; i < program.n_nodes; ++i) {
    const spf_node& node = program.nodes[i];
    const ScheduleNode schedule_node = nodes.Find(node.id)->node;
    const bool halves =
        apart &&
        (schedule_node == ScheduleNode::kMlp || schedule_node == ScheduleNode::kPreDispatch) &&
        nodes.Deferrable(node.id);
    std::vector<int> phases = {SPF_FWD};
    if (train_ && halves) phases.insert(phases.end(), {SPF_DGRAD, SPF_WGRAD});
    if (train_ && !halves) phases.push_back(SPF_BWD);
    for (const int phase : phases) {
      const spf_uses& uses = node.uses[phase];
      for (int32_t u = 0; u < uses.n; ++u) {
        if (uses.use[u].table >= SPF_IN_ACT)
          ++values_[{uses.use[u].table, uses.use[u].id, m}].users;
      }
    }
    if (node.layer < 0 || node.kind != SPF_NODE_EXCHANGE || node.send_counts < 0) continue;
    layer_of_counts_[node.send_counts] = layer_of_counts_[node.recv_counts] = node.layer;
  }
}

int64_t MiniMemory::RowsTo(int64_t sample, int32_t layer, int32_t member) const {
  const auto n = static_cast<int64_t>(facts_.List("ep", rank_)->size());
  const int64_t total = MoeSizesOf(spec_.model).tokens * spec_.model.moe.top_k;
  const int64_t open = spec_.model.moe.skew == "rank" ? std::max<int64_t>(1, n / 2) : n;
  if (member >= open) return 0;
  const auto share = [&](int64_t r) { return 1 + (sample + 2 * int64_t{layer} + r) % 3; };
  int64_t sum = 0, given = 0;
  for (int64_t r = 0; r < open; ++r) sum += share(r);
  for (int64_t r = 1; r < open; ++r) given += total * share(r) / sum;
  return member == 0 ? total - given : total * share(member) / sum;
}

// Rows to (or from) each member of "ep", for the COUNTS value.
std::vector<int64_t> MiniMemory::Splits(const spf_node& node, bool send, int32_t m) const {
  const std::vector<int32_t>& ep = *facts_.List("ep", rank_);
  const int32_t counts = send ? node.send_counts : node.recv_counts;
  std::vector<int64_t> rows;
  const auto me = static_cast<int32_t>(std::find(ep.begin(), ep.end(), rank_) - ep.begin());
  const spf_use& use = node.uses[SPF_FWD].use[0];
  const spf_value& value = tables().values[use.id];
  // The dispatch sends by the rank's own routing; the combine goes the other way.
  const bool own = counts >= 0 && std::string(tables().values[counts].name).find("send_counts") !=
                                      std::string::npos;
  for (size_t r = 0; r < ep.size(); ++r) {
    if (counts < 0) {
      rows.push_back(value.max_rows / static_cast<int64_t>(ep.size()));
      continue;
    }
    const int64_t from = own ? facts_.DataRank(rank_) : facts_.DataRank(ep[r]);
    const int64_t sample = int64_t{m} * DpCpSize(spec_) + from;
    rows.push_back(RowsTo(sample, node.layer, own ? static_cast<int32_t>(r) : me));
  }
  return rows;
}

int64_t MiniMemory::Rows(int32_t value, int32_t m) const {
  const spf_value& one = tables().values[value];
  if ((one.flags & SPF_VALUE_DYNAMIC) == 0) return one.max_rows;
  spf_node node{};
  node.layer = layer_of_counts_.at(one.rows_from);
  node.send_counts = one.rows_from;
  const spf_use use{SPF_IN_ACT, SPF_READ, 0, value};
  node.uses[SPF_FWD] = {1, &use};
  const std::vector<int64_t> rows = Splits(node, true, m);
  return std::accumulate(rows.begin(), rows.end(), int64_t{0});
}

Range MiniMemory::RangeOf(int table, int32_t value, int32_t m, int access, int stream) {
  const spf_value& one = tables().values[value];
  const int64_t bytes =
      Rows(value, m) * one.row_elems * static_cast<int64_t>(DtypeBytes(one.dtype));
  Range range;
  range.access = static_cast<uint8_t>(access);
  if (bytes == 0) return range;
  Value& at = values_[{table, value, m}];
  if (at.alloc < 0) at.alloc = t.Alloc(stream, bytes);
  return {at.alloc, static_cast<uint8_t>(access), 0, bytes};
}

void MiniMemory::Used(int table, int32_t value, int32_t m, int stream) {
  Value& at = values_[{table, value, m}];
  const bool keeps = f_.keep_activations || f_.free_at_end || f_.leak || (f_.eval_leaks && !train_);
  if (--at.users > 0 || at.alloc < 0 || keeps) return;
  t.Free(f_.free_on_compute ? compute : stream, at.alloc);
  at.alloc = -1;
}

void MiniMemory::FinishMicrobatch(int32_t m) {
  for (auto& [place, value] : values_) {
    if (!f_.free_at_end || std::get<2>(place) != m || value.alloc < 0) continue;
    t.Free(compute, value.alloc);
    value.alloc = -1;
  }
}

void MiniMemory::Compute(const spf_node& node, int phase, int32_t m, int stream) {
  const spf_uses& uses = node.uses[phase];
  if (uses.n == 0) return;
  std::vector<Range> ranges;
  for (int32_t u = 0; u < uses.n; ++u) {
    const spf_use& use = uses.use[u];
    if (use.table == SPF_IN_PARAM) {
      ranges.push_back(Reads(At(buckets_, use.id).full, 0, P(use.id).numel * 4));
    } else if (use.table == SPF_IN_GRAD) {
      ranges.push_back(Updates(GradientOf(use.id), 0, P(use.id).numel * 4));
    } else {
      ranges.push_back(RangeOf(use.table, use.id, m, use.access, stream));
    }
  }
  t.Compute(stream, node.id, phase, m, ranges);
  if (node.kind == SPF_NODE_INPUT)
    t.Last().sample = int64_t{m} * DpCpSize(spec_) + facts_.DataRank(rank_);
  for (int32_t u = 0; u < uses.n; ++u) {
    if (uses.use[u].table >= SPF_IN_ACT) Used(uses.use[u].table, uses.use[u].id, m, stream);
  }
}

void MiniMemory::Move(std::vector<Range> ranges, int stream, const CollectiveOptions& options) {
  std::vector<Range> values = ranges;
  for (Range& range : ranges) {
    const bool sent = range.access == kRead;
    if (sent && f_.send_freed) t.Free(stream, range.alloc);
    if (f_.pack < 0) continue;
    const int64_t bytes = range.length;
    const int buffer = t.Alloc(stream, bytes);
    if (sent && f_.pack_mixed && packed_ >= 0) {
      t.Launch(stream, f_.pack, {Reads(packed_, 0, 1), range, Writes(buffer, 0, bytes)});
    } else if (sent) {
      t.Launch(stream, f_.pack, {range, Writes(buffer, 0, bytes)});
    }
    range = {buffer, range.access, 0, bytes};
  }
  if (!f_.a2a_out_of_turn) Turn(stream);
  t.Collective(SPF_ALL_TO_ALL_V, groups_.at("ep"), stream, 0, ranges, options);
  if (!f_.a2a_out_of_turn) Taken(stream);
  for (size_t i = 0; f_.pack >= 0 && i < ranges.size(); ++i) {
    const bool sent = ranges[i].access == kRead;
    if (!sent) t.Launch(stream, f_.pack, {Reads(ranges[i].alloc, 0, ranges[i].length), values[i]});
    if (sent && f_.pack_mixed) {
      std::swap(packed_, ranges[i].alloc);
      if (ranges[i].alloc < 0) continue;
    }
    t.Free(stream, ranges[i].alloc);
  }
}

CollectiveOptions MiniMemory::OptionsOf(const spf_node& node, bool backward, int32_t m) const {
  const spf_uses& uses = node.uses[backward ? SPF_BWD : SPF_FWD];
  const spf_value& first = tables().values[node.uses[SPF_FWD].use[0].id];
  const bool counts = first.dtype < SPF_BF16;
  const int32_t of = f_.other_splits && backward && !counts ? (m + 1) % spec_.microbatches : m;
  const bool swap = backward && !f_.unswapped;
  CollectiveOptions options;
  options.dtype = tables().values[uses.use[uses.n - 1].id].dtype;
  options.send_counts = Splits(node, !swap, of);
  options.recv_counts = Splits(node, swap, of);
  for (int64_t& count : options.send_counts) count *= first.row_elems;
  for (int64_t& count : options.recv_counts) count *= first.row_elems;
  options.label = {counts ? SPF_FOR_EXPERT_COUNTS : SPF_FOR_EXPERT_TOKENS, node.module, m};
  if (f_.lost_row && !backward && !counts) options.send_counts[0] -= first.row_elems;
  if (f_.short_piece && backward && !options.send_counts.empty()) options.send_counts[0] -= 1;
  return options;
}

void MiniMemory::Exchange(const spf_node& node, bool backward, int32_t m, int stream) {
  const spf_uses& uses = node.uses[backward ? SPF_BWD : SPF_FWD];
  if (uses.n == 0) return;
  std::vector<Range> ranges;
  for (int32_t u = 0; u < uses.n; ++u) {
    const Range range = RangeOf(uses.use[u].table, uses.use[u].id, m, uses.use[u].access, stream);
    if (range.length > 0) ranges.push_back(range);
  }
  const std::string name = node.name;
  const bool dispatch = name.find(".dispatch") != std::string::npos;
  const bool probabilities = name.find(".dispatch_probs") != std::string::npos;
  if (f_.each_waits) Order(compute, stream);
  if (f_.second_waits && dispatch && probabilities != backward) Order(compute, stream);
  if (!(f_.skip_empty_exchange && ranges.size() < 2))
    Move(ranges, stream, OptionsOf(node, backward, m));
  for (int32_t u = 0; u < uses.n; ++u) Used(uses.use[u].table, uses.use[u].id, m, stream);
}

}  // namespace shardproof
