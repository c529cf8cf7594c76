// Reading a program: operations are paired, groups become kernels, waits capture records.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "conformance/checks/testing/explorer.h"

namespace shardproof::graph {

class Explorer::Reader {
 public:
  Reader(Explorer& to, const DeadlockProgram& from) : to_(to), from_(from) {
    to_.by_rank_.resize(from.ranks.size());
    for (size_t rank = 0; rank < from.ranks.size(); ++rank) ReadRank(static_cast<int32_t>(rank));
  }

 private:
  struct Held {
    std::string communicator;
    int32_t stream = 0, operation = 0;
  };
  struct Rank {
    std::map<std::string, int32_t> recorded, requests,
        called;                       // event: item; request: operation; communicator: calls
    std::map<int32_t, int32_t> last;  // stream: item
  };

  void ReadRank(int32_t number) {
    rank_ = number;
    state_ = {};
    const auto& threads = from_.ranks[static_cast<size_t>(number)];
    std::vector<size_t> next(threads.size(), 0);
    std::set<std::string> posted;
    const size_t first = to_.threads_.size();
    to_.threads_.resize(first + threads.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t t = 0; t < threads.size(); ++t) {
        to_.threads_[first + t].rank = number;
        while (next[t] < threads[t].size()) {
          const std::string& text = threads[t][next[t]];
          if (text.starts_with("await") && !posted.contains(text.substr(6))) break;
          if (text.starts_with("post")) posted.insert(text.substr(5));
          ++next[t];
          moved = true;
          to_.threads_[first + t].calls.push_back(static_cast<int32_t>(to_.calls_.size()));
          to_.calls_.emplace_back();
          ReadCall(text);
        }
      }
    }
  }

  int32_t NewItem(std::vector<int32_t> streams) {
    Item item;
    item.rank = rank_;
    item.streams = std::move(streams);
    const auto index = static_cast<int32_t>(to_.items_.size());
    to_.items_.push_back(item);
    to_.by_rank_[static_cast<size_t>(rank_)].push_back(index);
    to_.calls_.back().items.push_back(index);
    for (const int32_t stream : to_.items_.back().streams) state_.last[stream] = index;
    return index;
  }

  // The operation that this call is a part of.
  int32_t Meet(const std::vector<std::string>& words) {
    const bool message = words[0] == "send" || words[0] == "recv";
    int32_t other = -1;
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      if (equals != std::string::npos && word[0] != 'w' && word.substr(0, 4) != "read")
        other = std::stoi(word.substr(equals + 1));
    }
    std::string key = words[1];
    if (message) key += words[0] == "send" ? Pair(rank_, other) : Pair(other, rank_);
    const std::string mine = key + (message ? words[0] : "");
    const auto [at, fresh] = met_.try_emplace({key, state_.called[mine]++},
                                              static_cast<int32_t>(to_.operations_.size()));
    if (fresh) to_.operations_.emplace_back();
    Operation& operation = to_.operations_[static_cast<size_t>(at->second)];
    operation.kind = message                   ? 's'
                     : words[0] == "broadcast" ? 'b'
                     : words[0] == "reduce"    ? 'r'
                                               : 'c';
    operation.root = message ? (words[0] == "send" ? rank_ : other) : other;
    operation.members = message ? 2 : from_.communicators.at(words[1]).size();
    operation.who.push_back(rank_);
    operation.starter.push_back(0);
    return at->second;
  }

  static std::string Pair(int32_t from, int32_t to) {
    return " " + std::to_string(from) + ">" + std::to_string(to);
  }

  void Kernel(const std::vector<Held>& held) {
    std::vector<int32_t> streams, operations;
    for (const Held& one : held) {
      if (std::find(streams.begin(), streams.end(), one.stream) == streams.end())
        streams.push_back(one.stream);
      operations.push_back(one.operation);
    }
    const int32_t item = NewItem(streams);
    Item& kernel = to_.items_[static_cast<size_t>(item)];
    kernel.kernel = true;
    kernel.operations = operations;
    kernel.communicator = std::stoi(held[0].communicator.substr(1));
    for (const int32_t operation : operations) SetStarter(operation, item);
  }

  void SetStarter(int32_t operation, int32_t starter) {
    Operation& one = to_.operations_[static_cast<size_t>(operation)];
    for (size_t i = 0; i < one.who.size(); ++i) {
      if (one.who[i] == rank_) one.starter[i] = starter;
    }
  }

  void CloseGroup() {
    open_ = false;
    std::vector<std::string> order;
    for (const Held& one : held_) {
      if (std::find(order.begin(), order.end(), one.communicator) == order.end())
        order.push_back(one.communicator);
    }
    for (const std::string& communicator : order) {
      std::vector<Held> mine;
      for (const Held& one : held_) {
        if (one.communicator == communicator) mine.push_back(one);
      }
      Kernel(mine);
    }
    held_.clear();
  }

  void ReadSync(const std::string& of, Call& call) {
    for (const auto& [one, last] : state_.last) {
      if (of == "device" || of == "s" + std::to_string(one)) call.waits_for.push_back(last);
    }
    if (state_.recorded.contains(of)) call.waits_for.push_back(state_.recorded[of]);
  }

  void ReadCall(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    Call& call = to_.calls_.back();
    const std::string& name = words[0];
    const auto number = [&](size_t i) { return std::stoi(words[i].substr(1)); };
    if (name == "group_begin") {
      open_ = true;
    } else if (name == "group_end") {
      CloseGroup();
    } else if (name == "kernel") {
      NewItem({number(1)});
    } else if (name == "record") {
      const int32_t item = NewItem({number(2)});
      state_.recorded[words[1]] = item;
    } else if (name == "wait") {
      const auto recorded = state_.recorded.find(words[1]);
      const int32_t item = NewItem({number(2)});
      if (recorded != state_.recorded.end())
        to_.items_[static_cast<size_t>(item)].waits_for = recorded->second;
    } else if (name == "sync") {
      ReadSync(words[1], call);
    } else if (name == "host" || name == "start") {
      call.operation = Meet({words.begin() + 1, words.end()});
      SetStarter(call.operation, ~static_cast<int32_t>(to_.calls_.size() - 1));
      if (name == "host") call.completes = call.operation;
      if (name == "start") state_.requests[words[3]] = call.operation;
    } else if (name == "finish") {
      call.completes = state_.requests.at(words[1]);
    } else if (name == "post") {
      call.post = number(1) + 100 * rank_;
    } else if (name == "await") {
      call.await = number(1) + 100 * rank_;
    } else if (name != "host_access") {
      const Held one{words[1], number(2), Meet(words)};
      if (open_) {
        held_.push_back(one);
      } else {
        Kernel({one});
      }
    }
  }

  Explorer& to_;
  const DeadlockProgram& from_;
  int32_t rank_ = 0;
  Rank state_;
  bool open_ = false;
  std::vector<Held> held_;
  std::map<std::pair<std::string, int32_t>, int32_t> met_;
};

Explorer::Explorer(const DeadlockProgram& program) { Reader(*this, program); }

}  // namespace shardproof::graph
