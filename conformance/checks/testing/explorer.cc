#include "conformance/checks/testing/explorer.h"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace shardproof::graph {

struct Explorer::State {
  std::string items;          // by item: '0' not issued, '1' issued, '2' started, '3' done
  std::vector<size_t> at;     // by thread: the call it is in
  std::vector<bool> reached;  // by call
  std::set<int32_t> posted;
};

class Explorer::Runner {
 public:
  Runner(const Explorer& program, Machine machine, bool eager, int32_t slots)
      : program_(program), machine_(machine), eager_(eager), slots_(slots) {}

  // Leaves a unfinished; and a communicator no longer orders its kernels.
  void Hold(const Work& a) {
    communicator_order_ = false;
    const int32_t index = program_.CallOf(a);
    const Call& call = program_.calls_[static_cast<size_t>(index)];
    if (a.item >= 0) {
      held_item_ = call.items[static_cast<size_t>(a.item)];
    } else if (call.operation >= 0) {
      held_operation_ =
          call.operation;  // whoever waits for it here: this call, or that of a request
      held_rank_ = a.rank;
    } else {
      held_call_ = index;
    }
  }

  State Begin() const {
    State state;
    state.items.assign(program_.items_.size(), '0');
    state.at.assign(program_.threads_.size(), 0);
    state.reached.assign(program_.calls_.size(), false);
    Settle(state);
    return state;
  }

  // Hosts and local entries run as far as they can: they hold no slot, and what they do only
  // enables more.
  void Settle(State& state) const {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t t = 0; t < state.at.size(); ++t) moved = Host(state, t) || moved;
      for (size_t i = 0; i < program_.items_.size(); ++i) {
        const Item& item = program_.items_[i];
        if (item.kernel || state.items[i] != '1' || !AtHead(state, i)) continue;
        if (item.waits_for >= 0 && state.items[static_cast<size_t>(item.waits_for)] != '3')
          continue;
        if (static_cast<int32_t>(i) == held_item_) continue;
        state.items[i] = '3';
        moved = true;
      }
    }
  }

  bool CanStart(const State& state, size_t i) const {
    const Item& item = program_.items_[i];
    if (!item.kernel || state.items[i] != '1' || !AtHead(state, i)) return false;
    int32_t running = 0;
    for (const int32_t other : program_.by_rank_[static_cast<size_t>(item.rank)]) {
      const Item& one = program_.items_[static_cast<size_t>(other)];
      if (!one.kernel) continue;
      const char what = state.items[static_cast<size_t>(other)];
      running += what == '2';
      if (static_cast<size_t>(other) >= i) continue;
      if (communicator_order_ && one.communicator == item.communicator && what != '3') return false;
      if (machine_ == Machine::kInOrder && what < '2') return false;
      if (machine_ == Machine::kSerial && what != '3') return false;
    }
    return running < slots_;
  }

  // Local items end when they start.
  bool HasStarted(const State& state, int32_t item) const {
    return state.items[static_cast<size_t>(item)] >= '2';
  }

  bool Started(const State& state, int32_t starter) const {
    return starter >= 0 ? state.items[static_cast<size_t>(starter)] >= '2'
                        : state.reached[static_cast<size_t>(~starter)];
  }

  // For one of its ranks.
  bool Complete(const State& state, int32_t index, int32_t rank) const {
    const Operation& operation = program_.operations_[static_cast<size_t>(index)];
    const auto started = [&](int32_t who) {
      for (size_t i = 0; i < operation.who.size(); ++i) {
        if (operation.who[i] == who && Started(state, operation.starter[i])) return true;
      }
      return false;
    };
    const bool from_root = eager_ && (operation.kind == 'b' || operation.kind == 's');
    if (from_root) return started(rank) && started(operation.root);
    if (eager_ && operation.kind == 'r' && rank != operation.root) return started(rank);
    if (operation.who.size() < operation.members) return false;
    return std::all_of(operation.who.begin(), operation.who.end(), started);
  }

  bool CanComplete(const State& state, size_t i) const {
    return state.items[i] == '2' && !Spins(state, i) && static_cast<int32_t>(i) != held_item_;
  }

  bool Spins(const State& state, size_t i) const {
    const Item& item = program_.items_[i];
    if (!item.kernel || state.items[i] != '2') return false;
    return !std::all_of(item.operations.begin(), item.operations.end(),
                        [&](int32_t operation) { return Complete(state, operation, item.rank); });
  }

  bool Finished(const State& state) const {
    for (size_t t = 0; t < state.at.size(); ++t) {
      if (state.at[t] < program_.threads_[t].calls.size()) return false;
    }
    return std::all_of(state.items.begin(), state.items.end(),
                       [](char what) { return what == '3'; });
  }

 private:
  bool AtHead(const State& state, size_t i) const {
    const Item& item = program_.items_[i];
    for (const int32_t other : program_.by_rank_[static_cast<size_t>(item.rank)]) {
      if (static_cast<size_t>(other) >= i) break;
      const Item& before = program_.items_[static_cast<size_t>(other)];
      const char what = state.items[static_cast<size_t>(other)];
      if (machine_ == Machine::kOneQueue && what < (before.kernel ? '2' : '3')) return false;
      for (const int32_t stream : before.streams) {
        if (what != '3' &&
            std::find(item.streams.begin(), item.streams.end(), stream) != item.streams.end())
          return false;
      }
    }
    return true;
  }

  bool Host(State& state, size_t t) const {
    const Thread& thread = program_.threads_[t];
    bool moved = false;
    while (state.at[t] < thread.calls.size()) {
      const auto index = static_cast<size_t>(thread.calls[state.at[t]]);
      const Call& call = program_.calls_[index];
      if (call.await >= 0 && !state.posted.contains(call.await)) break;
      if (!state.reached[index]) {
        state.reached[index] = true;
        moved = true;
        for (const int32_t item : call.items) state.items[static_cast<size_t>(item)] = '1';
        if (call.post >= 0) state.posted.insert(call.post);
      }
      const bool waits =
          std::any_of(call.waits_for.begin(), call.waits_for.end(),
                      [&](int32_t item) { return state.items[static_cast<size_t>(item)] != '3'; });
      if (waits || (call.completes >= 0 && !Complete(state, call.completes, thread.rank))) break;
      if (Held(static_cast<int32_t>(index), thread.rank)) break;
      ++state.at[t];
      moved = true;
    }
    return moved;
  }

  bool Held(int32_t call, int32_t rank) const {
    const int32_t completes = program_.calls_[static_cast<size_t>(call)].completes;
    return call == held_call_ ||
           (completes >= 0 && completes == held_operation_ && rank == held_rank_);
  }

  const Explorer& program_;
  Machine machine_;
  bool eager_;
  int32_t slots_;
  bool communicator_order_ = true;
  int32_t held_item_ = -1, held_call_ = -1, held_operation_ = -1, held_rank_ = -1;
};

int32_t Explorer::CallOf(const Work& work) const {
  int32_t thread = work.thread;
  for (const Thread& one : threads_) {
    if (one.rank == work.rank && thread-- == 0) return one.calls[static_cast<size_t>(work.call)];
  }
  throw std::invalid_argument("no such thread");
}

bool Explorer::StartsWithout(const Work& b, const Work& a) const {
  Runner runner(*this, Machine::kFree, true, INT32_MAX);
  runner.Hold(a);
  State state = runner.Begin();
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (!runner.CanStart(state, i) && !runner.CanComplete(state, i)) continue;
      ++state.items[i];
      runner.Settle(state);
      moved = true;
    }
  }
  const auto call = static_cast<size_t>(CallOf(b));
  if (b.item < 0) return state.reached[call];
  return runner.HasStarted(state, calls_[call].items[static_cast<size_t>(b.item)]);
}

bool Explorer::RunOnce(Machine machine, bool eager, int32_t slots, std::mt19937& random) const {
  const Runner runner(*this, machine, eager, slots);
  State state = runner.Begin();
  while (true) {
    std::vector<size_t> possible;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (runner.CanStart(state, i) || runner.CanComplete(state, i)) possible.push_back(i);
    }
    if (possible.empty()) return runner.Finished(state);
    ++state.items[possible[random() % possible.size()]];
    runner.Settle(state);
  }
}

std::optional<Explorer::Explored> Explorer::Explore(int32_t slots, size_t states_max) const {
  const Runner runner(*this, Machine::kFree, false, slots);
  Explored result;
  result.spinning.assign(by_rank_.size(), 0);
  result.resident.assign(by_rank_.size(), 0);
  std::set<std::string> seen;
  std::vector<State> open{runner.Begin()};
  seen.insert(open[0].items);
  while (!open.empty()) {
    const State state = std::move(open.back());
    open.pop_back();
    std::vector<int32_t> spinning(by_rank_.size(), 0), resident(by_rank_.size(), 0);
    bool stuck = true;
    for (size_t i = 0; i < items_.size(); ++i) {
      const auto rank = static_cast<size_t>(items_[i].rank);
      spinning[rank] += runner.Spins(state, i);
      resident[rank] += items_[i].kernel && state.items[i] == '2';
      if (!runner.CanStart(state, i) && !runner.CanComplete(state, i)) continue;
      stuck = false;
      State next = state;
      ++next.items[i];
      runner.Settle(next);
      if (seen.insert(next.items).second) open.push_back(std::move(next));
      if (seen.size() > states_max) return std::nullopt;
    }
    for (size_t rank = 0; rank < by_rank_.size(); ++rank) {
      result.spinning[rank] = std::max(result.spinning[rank], spinning[rank]);
      result.resident[rank] = std::max(result.resident[rank], resident[rank]);
    }
    if (stuck && !runner.Finished(state)) result.hangs = true;
  }
  return result;
}

}  // namespace shardproof::graph
