// layer_wise.h: does an engine that deals whole parameters to ranks keep the rules of that?
//
// Judges LW-01 to LW-38 (requirements/lw.toml) for cases with strategy = layer_wise. Not the
// engine's layout is judged but what follows from any: who owns is who publishes.
#pragma once
#include <algorithm>

#include "conformance/checks/layer_wise/facts.h"

namespace shardproof {

CheckResult CheckLayerWise(const Analysis& a);

// Rows that other families judge under their own ids: what their verdicts mean for such a case.
// result: what those families found.
CheckResult CiteForLayerWise(const Analysis& a, const CheckResult& result);

namespace layer_wise {

// Its parts. They take facts that are built once.
CheckResult CheckOwnership(
    const Facts& facts);  // LW-01 to LW-04, LW-06, LW-32, LW-34: owners, and what they step
CheckResult CheckWire(
    const Facts& facts);  // LW-05, LW-07, LW-08, LW-14, LW-16, LW-28: what collectives hold
CheckResult CheckSizes(
    const Facts& facts);  // LW-07, LW-14: the cut by bucket_size, padding of aligned shards
CheckResult CheckGathers(
    const Facts& facts);  // LW-10, LW-13, LW-19: what gathers bring, and how often
CheckResult CheckReads(const Facts& facts);  // LW-11, LW-22, LW-35: what modules and gradients find
CheckResult CheckBuffers(
    const Facts& facts);  // LW-12, LW-18, LW-21 to LW-23, LW-25: where gathered values go
CheckResult CheckInFlight(const Facts& facts);  // LW-17, LW-23, LW-24: what goes on beside a gather
CheckResult CheckHidden(const Facts& facts);    // LW-38: happens-before of gathers and compute

// What the parts write to.
class Report {
 public:
  Report(const Facts& facts, CheckResult& result) : facts_(facts), result_(result), sink_(result) {}
  void Judged(std::initializer_list<const char*> requirements) { Judge(result_, requirements); }
  void Cannot(std::initializer_list<const char*> requirements, const std::string& why) {
    CannotJudge(result_, requirements, why);
  }
  void NotAsked(std::initializer_list<const char*> requirements, const std::string& why) {
    shardproof::NotAsked(result_, requirements, why);
  }
  // Rows for which no rank saw anything: they are missing if there must be something to see, else
  // not asked.
  void Unseen(std::initializer_list<const char*> requirements, const std::string& why) {
    Unseen(requirements, why, facts_.Updates(), "without a step that must update");
  }
  void Unseen(std::initializer_list<const char*> requirements, const std::string& why,
              bool expected, const char* without) {
    for (const char* id : requirements) {
      if (result_.judged.contains(id)) continue;
      if (expected) {
        Cannot({id}, why);
      } else {
        NotAsked({id}, why + ", in a case " + without);
      }
    }
  }
  void Add(const char* requirement, int32_t rank, int64_t event, std::string expected,
           std::string seen, std::string message) {
    Add(requirement, rank, event, event, std::move(expected), std::move(seen), std::move(message));
  }
  // With another event that has part in it.
  void Add(const char* requirement, int32_t rank, int64_t event, int64_t other,
           std::string expected, std::string seen, std::string message) {
    Finding finding = facts_.a().At(requirement, rank, event);
    finding.begins = std::min(event, other);
    sink_.Add(std::move(finding), std::move(expected), std::move(seen), std::move(message));
  }

 private:
  const Facts& facts_;
  CheckResult& result_;
  FindingSink sink_;
};

// LW-17, LW-23: a part of CheckInFlight.
void JudgeRaces(const Facts& facts, Report& report);

// What a part that looks at one rank goes by.
class RankCheck {
 protected:
  RankCheck(const Facts& facts, int32_t rank, CheckResult& result)
      : facts_(facts), a_(facts.a()), trace_(a_.trace(rank)), rank_(rank), report_(facts, result) {}

  const Facts& facts_;
  const Analysis& a_;
  const Trace& trace_;
  const int32_t rank_;
  Report report_;
};

}  // namespace layer_wise
}  // namespace shardproof
