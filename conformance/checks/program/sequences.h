// sequences.h: which operations meet: those of one communicator, by kind, or from one member to
// another?
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "conformance/checks/program/program.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

// Finds or makes the sequences of all communicators of the world.
class Sequences {
 public:
  explicit Sequences(Program& program) : program_(program) {}

  int32_t Communicator(const GroupInfo& group, int32_t rank) {
    const auto [at, fresh] =
        communicators_.try_emplace(group.comm, static_cast<int32_t>(program_.communicators.size()));
    if (fresh) program_.communicators.push_back({group.comm, group.name, group.world_ranks});
    const auto& known = At(program_.communicators, at->second);
    if (known.ranks != group.world_ranks && program_.inconsistent_groups.empty()) {
      program_.inconsistent_groups =
          "rank " + std::to_string(rank) + " has other members, or another order of them, for \"" +
          group.name + "\" than rank " + std::to_string(known.ranks.empty() ? -1 : known.ranks[0]);
    }
    return at->second;
  }

  // Of everybody in the communicator.
  int32_t Joint(int32_t communicator, Sequence::Kind kind) {
    const auto index = static_cast<size_t>(communicator) * kJoint + static_cast<size_t>(kind);
    if (joint_.size() <= index) joint_.resize(index + 1, -1);
    if (joint_[index] < 0) {
      joint_[index] = Add(kind, communicator, At(program_.communicators, communicator).ranks);
    }
    return joint_[index];
  }

  int32_t Messages(int32_t communicator, int32_t from, int32_t to) {
    const auto [at, fresh] = messages_.try_emplace({communicator, from, to}, 0);
    if (fresh) at->second = Add(Sequence::Kind::kMessages, communicator, {from, to});
    return at->second;
  }

 private:
  int32_t Add(Sequence::Kind kind, int32_t communicator, std::vector<int32_t> ranks) {
    Sequence& sequence = program_.sequences.emplace_back();
    sequence.kind = kind;
    sequence.communicator = communicator;
    sequence.parts.resize(ranks.size());
    sequence.ranks = std::move(ranks);
    return static_cast<int32_t>(program_.sequences.size()) - 1;
  }

  // All kinds before messages.
  static constexpr auto kJoint = static_cast<size_t>(Sequence::Kind::kMessages);

  Program& program_;
  std::unordered_map<std::string, int32_t> communicators_;
  std::vector<int32_t> joint_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> messages_;
};

}  // namespace shardproof::graph
