#include "conformance/checks/graph/labels.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "conformance/checks/graph/operation_signature.h"

namespace shardproof::graph {

namespace {

// What a label says; empty or negative: nothing.
struct Words {
  int32_t purpose = 0;
  std::string module;
  int32_t microbatch = -1;
  bool operator<(const Words& other) const {
    return std::tie(purpose, module, microbatch) <
           std::tie(other.purpose, other.module, other.microbatch);
  }
};

bool Contradict(const Words& a, const Words& b) {
  const bool purposes = a.purpose != 0 && b.purpose != 0 && a.purpose != b.purpose;
  const bool modules = !a.module.empty() && !b.module.empty() && a.module != b.module;
  return purposes || modules ||
         (a.microbatch >= 0 && b.microbatch >= 0 && a.microbatch != b.microbatch);
}

class Labels {
 public:
  Labels(const Program& program, const Sequence& sequence, bool microbatches)
      : program_(program), sequence_(sequence), microbatches_(microbatches) {}

  std::optional<Odd> First() const {
    size_t common = sequence_.length;
    for (const auto& list : sequence_.parts) common = std::min(common, list.size());
    if (Alike(common)) return std::nullopt;
    for (size_t i = 0; i < common; ++i) {
      std::optional<Odd> odd = OddAt(i);
      if (odd) return odd;
    }
    return std::nullopt;
  }

 private:
  const Event& EventAt(size_t member, size_t position, int32_t* rank) const {
    const Part& part = program_.parts[sequence_.parts[member][position]];
    *rank = part.rank;
    return program_.event(part);
  }

  // By hashes of the numbers as they stand, so that good runs are not searched.
  bool Alike(size_t common) const {
    uint64_t first = 0;
    for (size_t member = 0; member < sequence_.parts.size(); ++member) {
      uint64_t hash = 0;
      for (size_t i = 0; i < common; ++i) {
        int32_t rank = 0;
        const Event& event = EventAt(member, i, &rank);
        hash = HashOn(hash, static_cast<uint64_t>(static_cast<uint32_t>(event.purpose)) << 32 |
                                static_cast<uint32_t>(event.module));
        if (microbatches_) hash = HashOn(hash, static_cast<uint32_t>(event.microbatch));
      }
      if (member == 0) first = hash;
      if (hash != first) return false;
    }
    return true;
  }

  // Modules by name where a case tells it: ranks may number them differently.
  Words WordsAt(size_t member, size_t position) const {
    int32_t rank = 0;
    const Event& event = EventAt(member, position, &rank);
    Words words;
    words.purpose = event.purpose;
    if (event.module >= 0 && program_.names.module)
      words.module = program_.names.module(rank, event);
    if (event.module >= 0 && words.module.empty()) words.module = std::to_string(event.module);
    if (microbatches_) words.microbatch = event.microbatch;
    return words;
  }

  std::optional<Odd> OddAt(size_t position) const {
    std::map<Words, std::vector<size_t>> by_words;
    for (size_t member = 0; member < sequence_.parts.size(); ++member)
      by_words[WordsAt(member, position)].push_back(member);
    std::vector<std::pair<Words, std::vector<size_t>>> kinds(by_words.begin(), by_words.end());
    std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
      return std::make_tuple(-static_cast<int64_t>(a.second.size()), a.second[0]) <
             std::make_tuple(-static_cast<int64_t>(b.second.size()), b.second[0]);
    });
    for (size_t usual = 0; usual < kinds.size(); ++usual) {
      for (size_t other = kinds.size() - 1; other > usual; --other) {
        if (Contradict(kinds[usual].first, kinds[other].first))
          return Odd{position, kinds[other].second[0], kinds[usual].second};
      }
    }
    return std::nullopt;
  }

  const Program& program_;
  const Sequence& sequence_;
  const bool microbatches_;
};

}  // namespace

std::optional<Odd> FirstLabelsThatDiffer(const Program& program, const Sequence& sequence,
                                         bool microbatches) {
  return Labels(program, sequence, microbatches).First();
}

std::optional<size_t> FirstOfAnotherMicrobatch(const Program& program, const Sequence& messages) {
  const size_t common = std::min(messages.parts[0].size(), messages.parts[1].size());
  for (size_t i = 0; i < common; ++i) {
    const int32_t sent = program.event(program.parts[messages.parts[0][i]]).microbatch;
    const int32_t received = program.event(program.parts[messages.parts[1][i]]).microbatch;
    if (sent >= 0 && received >= 0 && sent != received) return i;
  }
  return std::nullopt;
}

}  // namespace shardproof::graph
