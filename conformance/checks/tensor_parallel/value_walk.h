// value_walk.h: does what a rank's nodes read behind collectives over tp and cp come of all ranks?
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/tensor_parallel/holds.h"
#include "conformance/checks/tensor_parallel/meetings.h"
#include "conformance/checks/tensor_parallel/messages.h"
#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/checks/tensor_parallel/value_memory.h"

namespace shardproof {

class ValueWalks;

// One rank: follows values through memory in issue order.
class ValueWalk : RankCheck {
 public:
  ValueWalk(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink,
            std::vector<Crossing>& over_tp, ValueWalks& walks);

  void Run();
  // What this message carries, once the rank has come that far. Null: it cannot, since it waits for
  // the one that asks.
  const std::vector<HeldPiece>* SentAt(int64_t event);

 private:
  void Advance();
  // Messages of one group operation leave before any of it arrives.
  void NoteSent(int64_t index);
  void Visit(int64_t index, const Event& event);

  void Compute(int64_t index, const Event& event);
  void Communicate(int64_t index, const Event& event);
  // What a message brings; null: no message, or not known.
  const std::vector<HeldPiece>* Arriving(int64_t index);
  void NoteCrossing(int64_t index, const std::vector<HeldPiece>* arrives);
  // A sum of summands, or a gather of parts.
  void JudgeMeeting(int64_t index, const Event& event, const std::vector<int32_t>& ranks,
                    Holds& holds);
  void JudgeRead(int64_t index, const Range& range, const Holds& read);

  Holds Own(const Event& event, const spf_use& use) const;
  const std::vector<int32_t>& RanksOf(const Holds& holds, const Met& met) const;

  ValueWalks& walks_;
  ValueMemory memory_;
  // By instance. sent_: what goes into a collective, read_: what nodes read behind it.
  std::vector<Values> sent_, read_;
  std::map<Axis, std::vector<std::vector<int32_t>>> lists_;  // by axis and instance: ranks
  std::set<std::pair<int64_t, Holds>> told_;
  std::vector<Crossing>& over_tp_;
  size_t next_ = 0;  // the first event that is not visited
  bool busy_ = false;
  std::map<int64_t, std::vector<HeldPiece>> sent_at_;  // what messages carry, by event
};

// All ranks: each goes on where another one waits for its message.
class ValueWalks {
 public:
  ValueWalks(const Analysis& a, CheckResult& result, FindingSink& sink, OverTp& over_tp);
  void Run();

  const Messages& messages() const { return messages_; }
  RankSets& ranks() { return ranks_; }
  const std::vector<HeldPiece>* SentBy(const Messages::Member& sender);

 private:
  const Messages messages_;
  RankSets ranks_;
  std::vector<std::unique_ptr<ValueWalk>> walks_;
};

}  // namespace shardproof
