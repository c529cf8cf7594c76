// FittedRun: what is asked when all cases have ended, and how random ones that failed are shrunk.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/runner/chosen.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/support/fitted_run.h"

namespace shardproof {
namespace {

// At most so many cases at the end of a run for what is still open.
constexpr size_t kMostAskedOn = 300;

CaseReport Declined(const Case& c, const std::string& why) {
  CaseReport report;
  report.id = Id(c);
  report.status = Status::kUnsupported;
  report.reason = why;
  return report;
}

// A value of another space may have taken the place of one that was drawn.
bool HasValue(const DrawnCase& drawn, const std::string& factor, const std::string& value) {
  const CaseFactors& space = drawn.from->space;
  const std::vector<Factor>& factors = space.problem->factors;
  const CoveringRow row = space.row_of(MakeCase(drawn));
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i].name == factor) return row[i] >= 0 && At(factors[i].values, row[i]) == value;
  }
  return false;
}

}  // namespace

std::vector<CaseReport> JudgeRunnable(const JudgeCases& judge, const std::vector<Case>& cases,
                                      const IsLast& last, const Options& options) {
  std::vector<Case> some;
  for (const Case& c : cases) {
    if (NotForFabric(c, options).empty()) some.push_back(c);
  }
  std::vector<CaseReport> judged = judge(some, last), reports;
  size_t next = 0;
  for (const Case& c : cases) {
    const std::string why = NotForFabric(c, options);
    if (!why.empty()) {
      reports.push_back(Declined(c, why));
    } else {
      reports.push_back(std::move(judged.at(next++)));
      if (last && last(reports.back())) break;
    }
  }
  return reports;
}

std::vector<OpenValue> FittedRun::ValuesToAsk() const {
  const auto open = [&](const std::vector<Case>& judged) {
    return OpenValues(spaces_, supported_, taken_, judged, UsualWorld(options_.ranks),
                      options_.seed);
  };
  std::vector<OpenValue> values = open(judged_);
  if (chosen_.empty()) return values;
  // Each shard answers for every n-th value of all, whatever cases it has.
  const Shard shard = ParseShard(options_.shard);
  std::set<std::tuple<std::string, std::string, std::string>> mine;
  size_t place = 0;
  for (const OpenValue& one : open({})) {
    if (shard.Has(place++)) mine.insert({one.space, one.factor, one.value});
  }
  std::erase_if(values, [&](const OpenValue& one) {
    return !mine.contains({one.space, one.factor, one.value});
  });
  return values;
}

void FittedRun::LeaveOutUnaskable(std::vector<OpenValue>* values) {
  std::erase_if(*values, [&](const OpenValue& one) {
    const std::string why = NotForFabric(one.with_it, options_);
    if (!why.empty())
      not_askable_.push_back(one.space + ", " + one.factor + " " + one.value +
                             ": no case that was judged has it, and of its plainest one, " +
                             Id(one.with_it) + ", " + why);
    return !why.empty();
  });
}

void FittedRun::AskOpenValues(const JudgeCases& judge, std::vector<CaseReport>* reports) {
  std::vector<OpenValue> open = ValuesToAsk();
  if (options_.random > 0) {  // few draws have not met every value
    std::erase_if(open, [&](const OpenValue& one) {
      return std::none_of(drawn_.begin(), drawn_.end(), [&](const DrawnCase& drawn) {
        return drawn.from->space.name == one.space && HasValue(drawn, one.factor, one.value);
      });
    });
  }
  LeaveOutUnaskable(&open);
  std::map<std::string, Case> cases;  // by id
  for (const OpenValue& one : open) cases.emplace(Id(one.with_it), one.with_it);
  std::erase_if(cases, [&](const auto& one) { return declined_.contains(one.first); });
  std::vector<Case> to_ask;
  for (const auto& [id, c] : cases) to_ask.push_back(c);
  for (CaseReport& report : judge(to_ask, nullptr)) {
    Note(cases.at(report.id), report);
    reports->push_back(std::move(report));
  }
  for (const OpenValue& one : open) {
    const auto declined = declined_.find(Id(one.with_it));
    if (declined == declined_.end()) continue;
    Lose(one, declined->second);
  }
}

void FittedRun::Lose(const OpenValue& one, const std::string& why) {
  lost_.push_back(one.space + ", " + one.factor + " " + one.value + ": " +
                  (options_.supports.empty() ? "the engine took it when it was asked, but"
                                             : "the file names it, but the engine") +
                  " declined each case with it, the plainest, " + Id(one.with_it) + ", too (" +
                  why + ")");
}

// The plain cases do not count: they are not what the profile is about.
void FittedRun::AskDeclinedValues(const JudgeCases& judge) {
  std::vector<OpenValue> open = ValuesToAsk();
  std::erase_if(open, [&](const OpenValue& one) {
    return !declined_values_.contains({one.space, one.factor, one.value});
  });
  LeaveOutUnaskable(&open);
  std::map<std::string, Case> cases;  // by id
  for (const OpenValue& one : open) cases.emplace(Id(one.with_it), one.with_it);
  std::vector<Case> to_ask;
  for (const auto& [id, c] : cases) to_ask.push_back(c);
  std::map<std::string, std::string> declined;
  for (const CaseReport& report : judge(to_ask, nullptr)) {
    if (report.status == Status::kUnsupported) declined[report.id] = report.reason;
  }
  for (const OpenValue& one : open) {
    const auto found = declined.find(Id(one.with_it));
    if (found != declined.end()) Lose(one, found->second);
  }
}

void FittedRun::AskOpenCombinations(const JudgeCases& judge, std::vector<CaseReport>* reports) {
  if (declined_.empty()) return;  // what is open then cannot be reached
  std::vector<Case> cases =
      OpenCombinations(spaces_, supported_, taken_, judged_, strength(), UsualWorld(options_.ranks),
                       options_.seed, kMostAskedOn);
  std::erase_if(cases, [&](const Case& c) { return declined_.contains(Id(c)); });
  std::erase_if(cases, [&](const Case& c) { return !NotForFabric(c, options_).empty(); });
  std::vector<CaseReport> some = judge(cases, nullptr);
  for (size_t i = 0; i < some.size(); ++i) {
    Note(cases[i], some[i]);
    if (some[i].status != Status::kUnsupported) reports->push_back(std::move(some[i]));
  }
}

std::vector<CaseReport> FittedRun::AskOn(const JudgeCases& judge) {
  std::vector<CaseReport> reports;
  if (HasOwnList(options_)) {
    if (!options_.supports.empty()) AskDeclinedValues(judge);
    return reports;
  }
  const bool in_shards = options_.select.empty() && options_.exclude.empty();
  if (chosen_.empty() || (in_shards && !options_.supports.empty())) AskOpenValues(judge, &reports);
  // What is open in a part of the cases others have.
  if (chosen_.empty() && options_.random == 0) AskOpenCombinations(judge, &reports);
  added_ = reports.size();
  ShrinkFailures(judge, &reports);
  return reports;
}

void FittedRun::ShrinkFailures(const JudgeCases& judge, std::vector<CaseReport>* reports) {
  const JudgeCases runnable = [&](const std::vector<Case>& cases, const IsLast& last) {
    return JudgeRunnable(judge, cases, last, options_);
  };
  size_t shrunk_causes = 0;
  for (const auto& [cause, failures] : failures_) {
    if (shrunk_causes++ == kMostShrunk) break;
    std::vector<FailedDraw> failed;
    for (const Failure& one : failures) failed.push_back({drawn_[one.drawn], one.report});
    Shrunk shrunk = ShrinkSeveral(std::move(failed), runnable);
    shrunk_.push_back(cause + ": the first finding of " + std::to_string(failures.size()) +
                      " random cases; smallest case with it: " + shrunk.report.id + " (from " +
                      shrunk.from + ", " + std::to_string(shrunk.runs) + " runs)");
    reports->push_back(std::move(shrunk.report));
  }
  if (failures_.size() > kMostShrunk)
    shrunk_.push_back("of " + std::to_string(failures_.size()) + " kinds of failures " +
                      std::to_string(kMostShrunk) + " were shrunk");
}

}  // namespace shardproof
