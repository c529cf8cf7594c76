// How many slots are enough when communicator kernels start in issue order? Completions are
// monotone, so one greedy replay decides: start what can start; when stuck, give every device one
// slot more.
#include <vector>

#include "conformance/checks/graph/kstar.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

namespace {

class Replay {
 public:
  explicit Replay(const Program& program)
      : program_(program), running_(program.first_entry.size(), 0) {
    GraphOptions options;
    options.profile = Profile::kE1;
    options.separate_completion = true;
    graph_ = BuildGraph(program, options);
    const uint32_t n = graph_.graph.nodes();
    waiting_.assign(n, 0);
    for (uint32_t v = 0; v < n; ++v) {
      for (const uint32_t* to = graph_.graph.begin(v); to != graph_.graph.end(v); ++to)
        ++waiting_[*to];
    }
    for (uint32_t v = 0; v < n; ++v) {
      if (!graph_.never.empty() && graph_.never[v]) ++waiting_[v];
      if (waiting_[v] == 0) ready_.push_back(v);
    }
  }

  int32_t Run() {
    while (true) {
      while (!ready_.empty()) {
        const uint32_t node = ready_.back();
        ready_.pop_back();
        Take(node);
      }
      if (held_.empty()) break;
      ++slots_;
      ready_.swap(held_);
    }
    return done_ == graph_.graph.nodes() ? slots_ : 0;
  }

 private:
  // The communicator kernel whose start or completion this is.
  const Entry* Kernel(uint32_t node) const {
    if (graph_.what[node] < 0) return nullptr;
    const Entry& entry = At(program_.entries, graph_.what[node]);
    return entry.kind == EntryKind::kKernel ? &entry : nullptr;
  }

  void Take(uint32_t node) {
    const Entry* kernel = Kernel(node);
    if (kernel == nullptr) return Fire(node);
    int32_t& running = At(running_, kernel->rank);
    const bool start = node == At(graph_.start, graph_.what[node]);
    if (!start) {
      --running;
      Release(kernel->rank);
    } else if (running >= slots_) {
      held_.push_back(node);
      return;
    } else {
      ++running;
    }
    Fire(node);
  }

  void Release(int32_t rank) {
    std::erase_if(held_, [&](uint32_t node) {
      const bool mine = Kernel(node)->rank == rank;
      if (mine) ready_.push_back(node);
      return mine;
    });
  }

  void Fire(uint32_t node) {
    ++done_;
    for (const uint32_t* to = graph_.graph.begin(node); to != graph_.graph.end(node); ++to) {
      if (--waiting_[*to] == 0) ready_.push_back(*to);
    }
  }

  const Program& program_;
  WaitGraph graph_;
  std::vector<int32_t> running_;  // by rank: kernels started and not completed
  std::vector<uint32_t> waiting_, ready_, held_;
  int32_t slots_ = 1;
  uint32_t done_ = 0;
};

}  // namespace

int32_t SlotsInOrder(const Program& program) { return Replay(program).Run(); }

}  // namespace shardproof::graph
