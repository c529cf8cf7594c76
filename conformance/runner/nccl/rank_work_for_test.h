// rank_work_for_test.h: what do rank processes do where only they are tested? Ranks exchange their
// numbers, and rank 1 of one item misbehaves.
#pragma once
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/fabric/nccl/rendezvous/case_table.h"
#include "conformance/runner/nccl/rank_processes.h"

namespace shardproof {

inline constexpr int kRanks = 2;
inline constexpr size_t kItems = 5, kBad = 2;

inline std::vector<int32_t> Everybody(int world) {
  std::vector<int32_t> all;
  for (int32_t rank = 0; rank < world; ++rank) all.push_back(rank);
  return all;
}

class Standin : public RankWork {
 public:
  Standin(const RankSide& side, Store& store, std::function<void(const RankSide&)> bad)
      : side_(side), store_(store.ForChild()), bad_(std::move(bad)) {}
  std::vector<std::string> Facts() override {
    return {"made for rank " + std::to_string(side_.rank)};
  }
  RankAnswer Run(const std::string& item) override {
    side_.progress->rank.store(side_.rank);
    Progress::Set(side_.progress->call, sizeof side_.progress->call, "train_step 0");
    Progress::Set(side_.progress->last, sizeof side_.progress->last, "communicate");
    side_.progress->beats.fetch_add(1);
    if (item == std::to_string(kBad) && side_.rank == 1) bad_(side_);
    CaseTable r(*store_, "case " + item, side_.rank, kRanks);
    const auto all =
        AllGather(r, "numbers", Everybody(kRanks),
                  std::to_string(std::stoi(item) * 10) + std::to_string(side_.rank), [&] {
                    side_.waits->fetch_add(1);
                    return false;
                  });
    RankAnswer answer;
    if (!all) {
      answer.end = {RankEnd::kAborted, "told: " + r.Aborted().value_or("?"), false, ""};
      answer.waited = true;
      answer.reusable = false;
      return answer;
    }
    answer.end.returned = true;
    for (const std::string& number : *all) answer.end.blob += number + " ";
    answer.end.blob += "from " + std::to_string(getpid());
    return answer;
  }

 private:
  RankSide side_;
  std::unique_ptr<Store> store_;
  std::function<void(const RankSide&)> bad_;
};

// Nothing but what a test does ends a rank.
inline RankProcessOptions Patient() {
  RankProcessOptions options;
  options.ranks = kRanks;
  options.stall_seconds = 60;
  options.grace_seconds = 60;
  return options;
}

}  // namespace shardproof
