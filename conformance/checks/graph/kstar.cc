#include "conformance/checks/graph/kstar.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "conformance/common/at.h"

namespace shardproof::graph {

namespace {

// The communicator kernels of one rank, as chains: those of one stream follow each other.
struct Chains {
  std::vector<std::vector<uint32_t>> kernels;  // by chain: entries
  std::vector<int32_t> streams;
  // By entry of the rank (relative): chain and index + 1; {0, 0} if it is no kernel.
  std::vector<std::pair<uint32_t, uint32_t>> place;
};

Chains FindChains(const Program& program, size_t rank) {
  Chains chains;
  const uint32_t first = program.first_entry[rank], last = program.first_entry[rank + 1];
  chains.place.assign(last - first, {0, 0});
  for (uint32_t e = first; e < last; ++e) {
    const Entry& entry = program.entries[e];
    if (entry.kind != EntryKind::kKernel) continue;
    const auto at = std::find(chains.streams.begin(), chains.streams.end(), entry.stream);
    const auto chain = static_cast<size_t>(at - chains.streams.begin());
    if (at == chains.streams.end()) {
      chains.streams.push_back(entry.stream);
      chains.kernels.emplace_back();
    }
    chains.kernels[chain].push_back(e);
    chains.place[e - first] = {static_cast<uint32_t>(chain),
                               static_cast<uint32_t>(chains.kernels[chain].size())};
  }
  return chains;
}

// For each chain how many of its kernels are over before something; and which operations of the
// next one are. Kept in one word: count << 32 | set of operations.
using Clock = uint64_t;

Clock Join(Clock a, Clock b) {
  if (a >> 32 == b >> 32) return a | b;
  return std::max(a, b);
}

// starts[chain][i * m + c]: how many kernels of chain c are over before kernel i of the chain can
// start.
using Starts = std::vector<std::vector<uint32_t>>;

// The widest antichain: for each set of chains, larger ones first, advance whichever head is over
// before another.
int32_t Widest(const Chains& chains, const Starts& starts) {
  const size_t m = chains.kernels.size();
  std::vector<uint32_t> sets;
  for (uint32_t set = 1; set < (1u << m); ++set) sets.push_back(set);
  std::stable_sort(sets.begin(), sets.end(),
                   [](uint32_t a, uint32_t b) { return std::popcount(a) > std::popcount(b); });
  for (const uint32_t set : sets) {
    if (std::popcount(set) == 1) return 1;
    std::vector<uint32_t> head(m, 0);
    bool moved = true, over = false;
    while (moved && !over) {
      moved = false;
      for (size_t a = 0; a < m && !over; ++a) {
        if ((set >> a & 1) == 0) continue;
        for (size_t b = 0; b < m; ++b) {
          if (a == b || (set >> b & 1) == 0) continue;
          const uint32_t done = starts[b][head[b] * m + a];  // of chain a before the head of b
          if (done <= head[a]) continue;
          head[a] = done;
          moved = true;
        }
        over = head[a] >= chains.kernels[a].size();
      }
    }
    if (!over) return std::popcount(set);
  }
  return 0;
}

// Over the rank's own prerequisites only.
Starts LocalStarts(const Program& program, size_t rank, const Chains& chains) {
  const size_t m = chains.kernels.size();
  const uint32_t first = program.first_entry[rank], last = program.first_entry[rank + 1];
  std::vector<uint32_t> clocks(size_t{last - first} * m, 0);  // at completion
  Starts starts(m);
  for (uint32_t e = first; e < last; ++e) {
    const Entry& entry = program.entries[e];
    uint32_t* mine = &clocks[size_t{e - first} * m];
    for (uint32_t i = entry.prerequisites.begin; i < entry.prerequisites.end; ++i) {
      const uint32_t* other = &clocks[size_t{program.prerequisites[i].entry() - first} * m];
      for (size_t c = 0; c < m; ++c) mine[c] = std::max(mine[c], other[c]);
    }
    const auto [chain, index] = chains.place[e - first];
    if (index == 0) continue;
    starts[chain].insert(starts[chain].end(), mine, mine + m);
    mine[chain] = std::max(mine[chain], index);
  }
  return starts;
}

// Over the edges of all ranks. joint: a kernel is over when its operations are; else when it has
// completed here.
Starts GlobalStarts(const Program& program, const WaitGraph& graph, const TopologicalOrder& order,
                    const Chains& chains, bool joint) {
  const size_t m = chains.kernels.size();
  std::vector<Clock> clocks(size_t{graph.graph.nodes()} * m, 0);
  std::vector<std::vector<std::pair<uint32_t, Clock>>> marks(
      m);  // by chain: node and what its firing means
  std::map<uint32_t, std::vector<std::pair<uint32_t, Clock>>> fires;
  for (uint32_t c = 0; c < m; ++c) {
    for (uint32_t i = 0; i < chains.kernels[c].size(); ++i) {
      const uint32_t e = chains.kernels[c][i];
      const Slice parts = program.entries[e].parts;
      if (!joint || parts.size() > 32) {
        fires[graph.complete[e]].push_back({c, Clock{i + 1} << 32});
        continue;
      }
      for (uint32_t p = parts.begin; p < parts.end; ++p) {
        const Clock mark = parts.size() == 1 ? Clock{i + 1} << 32
                                             : (Clock{i} << 32 | Clock{1} << (p - parts.begin));
        fires[graph.joint[program.operation(program.parts[p])]].push_back({c, mark});
      }
    }
  }
  const auto settle = [&](uint32_t c,
                          Clock clock) {  // all operations of the next kernel are done: it is over
    const auto count = static_cast<uint32_t>(clock >> 32);
    if (count >= chains.kernels[c].size()) return clock;
    const uint32_t operations = program.entries[chains.kernels[c][count]].parts.size();
    if (operations > 32 || operations == 1) return clock;
    const Clock all = (Clock{1} << operations) - 1;
    return (clock & all) == all ? Clock{count + 1} << 32 : clock;
  };
  for (const uint32_t node : order.order) {
    Clock* mine = &clocks[size_t{node} * m];
    for (uint32_t c = 0; c < m; ++c) mine[c] = settle(c, mine[c]);
    if (const auto at = fires.find(node); at != fires.end()) {
      for (const auto& [c, mark] : at->second) mine[c] = settle(c, Join(mine[c], mark));
    }
    for (const uint32_t* to = graph.graph.begin(node); to != graph.graph.end(node); ++to) {
      Clock* other = &clocks[size_t{*to} * m];
      for (size_t c = 0; c < m; ++c) other[c] = Join(other[c], mine[c]);
    }
  }
  Starts starts(m);
  for (size_t c = 0; c < m; ++c) {
    for (const uint32_t e : chains.kernels[c]) {
      for (size_t d = 0; d < m; ++d) {
        starts[c].push_back(static_cast<uint32_t>(clocks[size_t{graph.start[e]} * m + d] >> 32));
      }
    }
  }
  return starts;
}

// Kernels in flight together are on different streams and of different communicators: a maximum
// matching.
int32_t BoundByMatching(const Program& program, const Chains& chains) {
  std::vector<std::set<int32_t>> uses(chains.kernels.size());
  for (size_t c = 0; c < uses.size(); ++c) {
    for (const uint32_t e : chains.kernels[c]) {
      uses[c].insert(At(program.sequences, program.entries[e].sequence).communicator);
    }
  }
  std::map<int32_t, size_t> holder;
  int32_t size = 0;
  for (size_t c = 0; c < uses.size(); ++c) {
    std::set<int32_t> tried;
    const std::function<bool(size_t)> place = [&](size_t chain) {
      for (const int32_t communicator : uses[chain]) {
        if (!tried.insert(communicator).second) continue;
        const auto at = holder.find(communicator);
        if (at != holder.end() && !place(at->second)) continue;
        holder[communicator] = chain;
        return true;
      }
      return false;
    };
    if (place(c)) ++size;
  }
  return size;
}

}  // namespace

std::vector<Slots> CountSlots(const Program& program, int64_t work_limit) {
  const size_t ranks = program.first_entry.size() - 1;
  std::vector<Slots> result(ranks);
  std::vector<Chains> chains;
  int64_t work = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    chains.push_back(FindChains(program, rank));
    Slots& slots = result[rank];
    const size_t m = chains[rank].kernels.size();
    slots.bound = m > 8;
    if (m > 0)
      slots.local = slots.bound ? BoundByMatching(program, chains[rank])
                                : Widest(chains[rank], LocalStarts(program, rank, chains[rank]));
    slots.spin = slots.resident = slots.local;
    slots.exact = slots.local <= 1;
    if (!slots.exact && !slots.bound) work += static_cast<int64_t>(program.entries.size() * m);
  }
  if (work == 0 || work > work_limit) return result;
  GraphOptions options;
  options.separate_completion = true;
  const WaitGraph graph = BuildGraph(program, options);
  const TopologicalOrder order = Sort(graph.graph, graph.never);
  for (size_t rank = 0; rank < ranks; ++rank) {
    Slots& slots = result[rank];
    if (slots.exact || slots.bound) continue;
    slots.spin = Widest(chains[rank], GlobalStarts(program, graph, order, chains[rank], true));
    slots.resident = Widest(chains[rank], GlobalStarts(program, graph, order, chains[rank], false));
    slots.exact = true;
  }
  return result;
}

}  // namespace shardproof::graph
