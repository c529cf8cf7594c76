#include "conformance/checks/testing/racing_programs.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "conformance/checks/testing/racing_rank.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

namespace {

// The operations of all ranks, in one order that every rank could follow.
class ProgramDrawer {
 public:
  explicit ProgramDrawer(std::mt19937& random) : dice_(random) {}

  DeadlockProgram Draw() {
    const int32_t ranks = 2 + dice_.Pick(2);
    std::vector<int32_t> all;
    for (int32_t rank = 0; rank < ranks; ++rank) all.push_back(rank);
    // Of streams, then of the host.
    program_.communicators = {
        {"c0", all}, {"c1", {0, ranks - 1}}, {"c2", all}, {"c3", {ranks - 2, ranks - 1}}};
    shares_.resize(all.size());
    const int32_t operations = 2 + dice_.Pick(dice_.OneIn(8) ? 12 : 5);
    const int32_t turned = dice_.OneIn(2) ? dice_.Pick(operations) : -1;
    for (int32_t i = 0; i < operations; ++i) i == turned ? TurnedPair() : Operation();
    for (std::vector<Share>& shares : shares_)
      program_.ranks.push_back(RankDrawer(dice_, std::move(shares)).Draw());
    return std::move(program_);
  }

 private:
  void Operation() {
    const bool host = dice_.OneIn(2);
    const std::string communicator = "c" + std::to_string((host ? 2 : 0) + dice_.Pick(2));
    const std::vector<int32_t>& members = program_.communicators.at(communicator);
    const int32_t root = At(members, dice_.Pick(Length(members)));
    if (!host && dice_.OneIn(4)) return Message(communicator, members, root);
    const char* const names[] = {"all_gather", "reduce_scatter", "all_reduce",
                                 "all_to_all", "broadcast",      "reduce"};
    const int32_t kind = dice_.Pick(6);
    const std::string tail = kind >= 4 ? " root=" + std::to_string(root) : "";
    const bool request = host && dice_.OneIn(2);
    for (const int32_t rank : members)
      At(shares_, rank).push_back({names[kind], communicator, tail, host, request});
  }

  // A collective on a stream and one of the host, in different orders on two ranks: what the second
  // does on its host before both is over before what it does on the stream behind both.
  void TurnedPair() {
    const std::string gather = "c" + std::to_string(dice_.Pick(2));
    const std::string reduce = "c" + std::to_string(2 + dice_.Pick(2));
    std::vector<int32_t> both;
    for (const int32_t rank : program_.communicators.at(gather)) {
      const auto& members = program_.communicators.at(reduce);
      if (std::find(members.begin(), members.end(), rank) != members.end()) both.push_back(rank);
    }
    if (both.size() < 2) return;
    const auto at = static_cast<size_t>(dice_.Pick(Length(both)));
    const int32_t first = both[at], second = both[(at + 1) % both.size()];
    const Share on_stream = dice_.OneIn(2)
                                ? Share{"all_gather", gather, ""}
                                : Share{"broadcast", gather, " root=" + std::to_string(first)};
    const Share on_host = dice_.OneIn(2)
                              ? Share{"all_reduce", reduce, "", true}
                              : Share{"broadcast", reduce, " root=" + std::to_string(second), true};
    for (const int32_t rank : program_.communicators.at(gather)) {
      if (rank != first) At(shares_, rank).push_back(on_stream);
    }
    for (const int32_t rank : program_.communicators.at(reduce))
      At(shares_, rank).push_back(on_host);
    At(shares_, first).push_back(on_stream);
    const std::string block = "b" + std::to_string(dice_.Pick(RankDrawer::kBlocks));
    Share& last = At(shares_, second).back();
    last.before = (dice_.OneIn(2) ? " read=" : " write=") + block;
    last.request = dice_.OneIn(3);
    Share& early = At(shares_, second)[shares_[static_cast<size_t>(second)].size() - 2];
    early.after = (last.before[1] == 'r' ? " write=" : " read=") + block;
  }

  void Message(const std::string& communicator, const std::vector<int32_t>& members, int32_t from) {
    int32_t to = from;
    while (to == from) to = At(members, dice_.Pick(Length(members)));
    At(shares_, from).push_back({"send", communicator, " to=" + std::to_string(to)});
    At(shares_, to).push_back({"recv", communicator, " from=" + std::to_string(from)});
  }

  Dice dice_;
  DeadlockProgram program_;
  std::vector<std::vector<Share>> shares_;
};

}  // namespace

DeadlockProgram DrawRacingProgram(std::mt19937& random) { return ProgramDrawer(random).Draw(); }

Draws WantedDraws(const Draws& otherwise) {
  Draws draws = otherwise;
  if (const char* programs = std::getenv("SHARDPROOF_RACE_PROGRAMS"))
    draws.programs = std::stoi(programs);
  if (const char* seed = std::getenv("SHARDPROOF_RACE_SEED"))
    draws.seed = static_cast<unsigned>(std::stoul(seed));
  return draws;
}

std::string ToText(const DeadlockProgram& program) {
  std::string text;
  for (const auto& threads : program.ranks) {
    for (const auto& thread : threads) {
      if (&thread != &threads[0]) text += " // ";
      for (const std::string& operation : thread)
        text += (&operation == &thread[0] ? "" : "; ") + operation;
    }
    text += '\n';
  }
  return text;
}

}  // namespace shardproof::graph
