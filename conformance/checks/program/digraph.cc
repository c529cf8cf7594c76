#include "conformance/checks/program/digraph.h"

#include <algorithm>

namespace shardproof::graph {

Digraph::Digraph(uint32_t nodes, const std::vector<Edge>& edges)
    : first_(size_t{nodes} + 1, 0), to_(edges.size()) {
  for (const Edge& edge : edges) ++first_[size_t{edge.first} + 1];
  for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  for (const Edge& edge : edges) to_[next[edge.first]++] = edge.second;
}

namespace {

// By node: how many others it waits for; one more if it never comes.
std::vector<uint32_t> CountWaiting(const Digraph& graph, const std::vector<bool>& never) {
  std::vector<uint32_t> waiting(graph.nodes(), 0);
  for (uint32_t v = 0; v < graph.nodes(); ++v) {
    if (!never.empty() && never[v]) ++waiting[v];
    for (const uint32_t* to = graph.begin(v); to != graph.end(v); ++to) ++waiting[*to];
  }
  return waiting;
}

}  // namespace

TopologicalOrder Sort(const Digraph& graph, const std::vector<bool>& never) {
  return SortAsWished(graph, never, {});
}

TopologicalOrder SortAsWished(const Digraph& graph, const std::vector<bool>& never,
                              const std::vector<uint32_t>& wished) {
  const uint32_t n = graph.nodes();
  std::vector<uint32_t> waiting = CountWaiting(graph, never), next(wished.size(), kUnplaced), early;
  for (uint32_t v = 0; v < wished.size(); ++v) {
    if (wished[v] != kUnplaced) next[wished[v]] = v;
  }
  TopologicalOrder result;
  result.position.assign(n, kUnplaced);
  result.order.reserve(n);
  const auto place = [&](uint32_t v) {
    if (result.position[v] != kUnplaced) return;
    result.position[v] = static_cast<uint32_t>(result.order.size());
    result.order.push_back(v);
  };
  // v waits for nothing more.
  const auto offer = [&](uint32_t v) {
    if (wished.empty() || wished[v] == kUnplaced || result.position[wished[v]] != kUnplaced) {
      place(v);
    } else {
      early.push_back(v);
    }
  };
  for (uint32_t v = 0; v < n; ++v) {
    if (waiting[v] == 0) offer(v);
  }
  for (size_t i = 0, taken = 0;; ++i) {
    while (i == result.order.size() && taken < early.size()) place(early[taken++]);
    if (i == result.order.size()) return result;
    const uint32_t v = result.order[i];
    for (const uint32_t* to = graph.begin(v); to != graph.end(v); ++to) {
      if (--waiting[*to] == 0) offer(*to);
    }
    if (!next.empty() && next[v] != kUnplaced && waiting[next[v]] == 0) place(next[v]);
  }
}

namespace {

// Tarjan's algorithm on the unplaced nodes with an explicit stack.
class Components {
 public:
  Components(const Digraph& graph, const TopologicalOrder& order)
      : graph_(graph),
        order_(order),
        index_(graph.nodes(), 0),
        low_(graph.nodes(), 0),
        component(graph.nodes(), kUnplaced) {
    for (uint32_t v = 0; v < graph.nodes(); ++v) {
      if (order.position[v] == kUnplaced && index_[v] == 0) Visit(v);
    }
  }

 private:
  struct Frame {
    uint32_t node;
    const uint32_t* next;
  };

  void Open(uint32_t v) {
    index_[v] = low_[v] = ++counter_;
    stack_.push_back(v);
    frames_.push_back({v, graph_.begin(v)});
  }

  void Close(uint32_t v) {
    if (low_[v] != index_[v]) return;
    uint32_t size = 0;
    uint32_t w = kUnplaced;
    do {
      w = stack_.back();
      stack_.pop_back();
      component[w] = static_cast<uint32_t>(sizes.size());
      ++size;
    } while (w != v);
    sizes.push_back(size);
  }

  void Visit(uint32_t root) {
    Open(root);
    while (!frames_.empty()) {
      const uint32_t v = frames_.back().node;
      if (frames_.back().next != graph_.end(v)) {
        const uint32_t w = *frames_.back().next++;
        if (order_.position[w] != kUnplaced) continue;
        if (index_[w] == 0) {
          Open(w);
        } else if (component[w] == kUnplaced) {
          low_[v] = std::min(low_[v], index_[w]);
        }
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty())
        low_[frames_.back().node] = std::min(low_[frames_.back().node], low_[v]);
      Close(v);
    }
  }

  const Digraph& graph_;
  const TopologicalOrder& order_;
  std::vector<uint32_t> index_, low_, stack_;
  std::vector<Frame> frames_;
  uint32_t counter_ = 0;

 public:
  std::vector<uint32_t> component, sizes;
};

// The shortest cycle through start inside its component; empty: none shorter than limit.
std::vector<uint32_t> CycleThrough(const Digraph& graph, const std::vector<uint32_t>& component,
                                   uint32_t start, std::vector<uint32_t>& parent,
                                   std::vector<uint32_t>& queue) {
  queue.assign(1, start);
  std::vector<uint32_t> cycle;
  for (size_t i = 0; i < queue.size() && cycle.empty(); ++i) {
    const uint32_t v = queue[i];
    for (const uint32_t* to = graph.begin(v); to != graph.end(v); ++to) {
      if (*to == start) {
        for (uint32_t w = v; w != start; w = parent[w]) cycle.push_back(w);
        cycle.push_back(start);
        break;
      }
      if (component[*to] != component[start] || parent[*to] != kUnplaced) continue;
      parent[*to] = v;
      queue.push_back(*to);
    }
  }
  for (const uint32_t v : queue) parent[v] = kUnplaced;
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

}  // namespace

std::vector<uint32_t> ShortCycle(const Digraph& graph, const TopologicalOrder& order) {
  const Components found(graph, order);
  std::vector<bool> entered(found.sizes.size(), false), cyclic(found.sizes.size(), false);
  for (size_t c = 0; c < cyclic.size(); ++c) cyclic[c] = found.sizes[c] > 1;
  // Tarjan numbers components so that edges lead to lower numbers: a source among the cyclic ones
  // is the cause.
  std::vector<bool> behind(found.sizes.size(), false);
  std::vector<std::vector<uint32_t>> nodes(found.sizes.size());
  for (uint32_t v = 0; v < graph.nodes(); ++v) {
    if (order.position[v] == kUnplaced) nodes[found.component[v]].push_back(v);
  }
  size_t cause = found.sizes.size();
  for (size_t c = found.sizes.size(); c-- > 0;) {
    if (cyclic[c] && !behind[c] && (cause == found.sizes.size() || nodes[c][0] < nodes[cause][0]))
      cause = c;
    for (const uint32_t v : nodes[c]) {
      for (const uint32_t* to = graph.begin(v); to != graph.end(v); ++to) {
        const uint32_t next = found.component[*to];
        if (next != c && next != kUnplaced && (cyclic[c] || behind[c])) behind[next] = true;
      }
    }
  }
  if (cause == found.sizes.size()) return {};
  std::vector<uint32_t> best, parent(graph.nodes(), kUnplaced), queue;
  for (size_t i = 0; i < std::min<size_t>(nodes[cause].size(), 256); ++i) {
    auto cycle = CycleThrough(graph, found.component, nodes[cause][i], parent, queue);
    if (!cycle.empty() && (best.empty() || cycle.size() < best.size())) best = std::move(cycle);
  }
  return best;
}

std::vector<uint32_t> FindPath(const Digraph& graph, const TopologicalOrder& order, uint32_t from,
                               uint32_t to) {
  if (from == to) return {from};
  std::vector<uint32_t> parent(graph.nodes(), kUnplaced), queue{from};
  parent[from] = from;
  for (size_t i = 0; i < queue.size(); ++i) {
    const uint32_t v = queue[i];
    for (const uint32_t* next = graph.begin(v); next != graph.end(v); ++next) {
      if (parent[*next] != kUnplaced || order.position[*next] > order.position[to]) continue;
      parent[*next] = v;
      queue.push_back(*next);
      if (*next != to) continue;
      std::vector<uint32_t> path{to};
      while (path.back() != from) path.push_back(parent[path.back()]);
      std::reverse(path.begin(), path.end());
      return path;
    }
  }
  return {};
}

}  // namespace shardproof::graph
