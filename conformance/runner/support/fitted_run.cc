#include "conformance/runner/support/fitted_run.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "conformance/cases/profiles.h"
#include "conformance/cases/support/fitted_profile.h"
#include "conformance/cases/support/killed_saves.h"
#include "conformance/cases/support/learn.h"
#include "conformance/cases/support/reshard.h"
#include "conformance/cases/support/starved_cases.h"
#include "conformance/cases/support/would_add.h"
#include "conformance/common/at.h"
#include "conformance/common/read_file.h"
#include "conformance/runner/chosen.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/support/ask_engine.h"
#include "conformance/runner/support/supports_file.h"

namespace shardproof {
namespace {

// The size of worlds that cases have unless a combination asks for another one.
int32_t UsualWorld(int ranks) { return ranks == 0 ? 4 : ranks; }

Supported ReadSupports(const std::string& path, const std::vector<CaseFactors>& spaces) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text) {
    throw std::invalid_argument("--supports " + path + ": it cannot be read (" +
                                std::strerror(errno) + ")");
  }
  Supported supported = ParseSupports(*text, path);
  if (supported.empty())
    throw std::invalid_argument(path + ": it has no section: nothing would be asked");
  CheckSupports(supported, spaces, path);
  return supported;
}

// Then the suite's own profile is as good, where it is of all ranks.
bool TakesEverything(const std::vector<CaseFactors>& spaces, const Supported& supported) {
  for (const CaseFactors& space : spaces) {
    const auto values = supported.find(space.name);
    if (values == supported.end() || !values->second.without.empty() ||
        MaskOf(space, values->second.values) != AllValuesOf(*space.problem))
      return false;
  }
  return true;
}

// "strategies: optimizer adamw, param_dtype bf16"
std::string Untaken(const CaseFactors& space, const Supported& supported) {
  const auto values = supported.find(space.name);
  if (values == supported.end()) return space.name + ": everything";
  const ValueMask mask = MaskOf(space, values->second.values);
  std::string text;
  for (size_t factor = 0; factor < mask.size(); ++factor) {
    std::string some;
    for (size_t value = 0; value < mask[factor].size(); ++value) {
      if (!mask[factor][value]) some += " " + space.problem->factors[factor].values[value];
    }
    if (!some.empty())
      text += (text.empty() ? "" : ", ") + space.problem->factors[factor].name + some;
  }
  for (const SupportedValues& together : values->second.without) {
    text += text.empty() ? "" : ", ";
    const char* join = "";
    for (const auto& [name, some] : together) {
      text += join + name;
      for (const std::string& value : some) text += " " + value;
      join = " with ";
    }
  }
  return text.empty() ? "" : space.name + ": " + text;
}

// At most so many cases at the end of a run for what is still open.
constexpr size_t kMostAskedOn = 300;

bool HasValue(const DrawnCase& drawn, const std::string& factor, const std::string& value) {
  const std::vector<Factor>& factors = drawn.from->space.problem->factors;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i].name == factor) return At(factors[i].values, drawn.row[i]) == value;
  }
  return false;
}

}  // namespace

bool HasOwnList(const Options& options) {
  return options.cases.empty() && options.random == 0 &&
         (options.profile == "reshard" || options.profile == "crash" || options.profile == "oom");
}

bool AsksOn(const Options& options, bool enough, bool out_of_time) {
  return !enough || (options.random > 0 && !out_of_time);
}

bool IsFitted(const Options& options) {
  const bool of_sim = options.profile == "crash" || options.profile == "oom";
  if (options.fabric == "nccl" || options.fabric == "dry" || (of_sim && options.fabric != "sim"))
    return false;
  if (options.random > 0 || HasOwnList(options)) return true;
  if (!options.cases.empty() || options.profile == "smoke") return false;
  return !options.supports.empty() || options.impl.starts_with("lib:");
}

bool WillAsk(const Options& options) {
  return IsFitted(options) && options.supports.empty() && options.impl.starts_with("lib:");
}

FittedRun::FittedRun(const Options& options, int ranks)
    : options_(options), spaces_(FactorsUpTo(ranks, kept_)) {
  if (!options.supports.empty()) {
    supported_ = ReadSupports(options.supports, spaces_);
    how_ = "told by " + options.supports;
    return;
  }
  if (!options.impl.starts_with("lib:")) {
    supported_ = AllOf(spaces_);
    how_ = "everything";
    return;
  }
  EngineAsker asker(options.impl, options.stall_seconds);
  const Learnt learnt = LearnSupport(
      spaces_, UsualWorld(ranks), [&](const std::vector<Case>& cases) { return asker.Ask(cases); });
  supported_ = learnt.supported;
  taken_ = learnt.rows;
  how_ = "asked in " + std::to_string(learnt.asked) + " cases";
  for (size_t i = 0; i < asker.ends().size(); ++i)
    how_ += (i == 0 ? "; its process ended, or hung, in " : ", ") + asker.ends()[i];
  if (asker.gave_up()) how_ += "; after that nothing was asked: it may take more";
}

FittedRun::FittedRun(const Options& options, int ranks, const std::string& told)
    : options_(options),
      spaces_(FactorsUpTo(ranks, kept_)),
      supported_(ParseSupports(told, "what the engine takes")) {}

std::string FittedRun::Told() const { return SupportsText(supported_, how_); }

std::string FittedRun::Seeds() const {
  if (options_.random == 0) return "";
  const uint64_t last = options_.seed + static_cast<uint64_t>(options_.random) - 1;
  return "random cases of seeds " + std::to_string(options_.seed) + " to " + std::to_string(last);
}

std::vector<Case> FittedRun::RandomCases() {
  from_ = WhatToDrawFrom(spaces_, supported_, UsualWorld(options_.ranks));
  std::vector<Case> cases;
  for (int i = 0; i < options_.random && !from_.empty(); ++i) {
    drawn_.push_back(Draw(from_, options_.seed + static_cast<uint64_t>(i)));
    cases.push_back(MakeCase(drawn_.back()));
  }
  return cases;
}

std::vector<Case> FittedRun::OwnList() const {
  const auto& make = options_.profile == "crash" ? KilledSaves
                     : options_.profile == "oom" ? StarvedCases
                                                 : ReshardCases;
  return make(spaces_, supported_, UsualWorld(options_.ranks), options_.seed);
}

std::vector<std::string> FittedRun::Coverage() const {
  if (!HasOwnList(options_)) return FittedCoverage(spaces_, supported_, judged_, strength());
  const auto& coverage = options_.profile == "crash" ? KilledSavesCoverage
                         : options_.profile == "oom" ? StarvedCoverage
                                                     : ReshardCoverage;
  return coverage(spaces_, asked_, judged_);
}

std::vector<Case> FittedRun::Cases() {
  if (options_.random > 0) return RandomCases();
  if (HasOwnList(options_)) {
    asked_ = OwnList();
    std::vector<Case> chosen = asked_;
    chosen_ = KeepChosen(options_, &chosen);
    return chosen;
  }
  std::vector<Case> all =
      Profile(options_.profile, options_.fabric, kept_, options_.seed, options_.ranks);
  std::erase_if(all, [&](const Case& c) { return options_.ranks > 0 && c.world > options_.ranks; });
  const bool all_ranks = options_.ranks == 0 || options_.ranks >= 8;
  if (all_ranks && TakesEverything(spaces_, supported_)) {
    chosen_ = KeepChosen(options_, &all);
    return all;
  }
  const auto fits = [&](const Case& c) { return Fits(spaces_, supported_, c); };
  const auto first_left_out = std::stable_partition(all.begin(), all.end(), fits);
  left_out_.assign(first_left_out, all.end());
  all.erase(first_left_out, all.end());
  std::set<std::string> ids;
  for (const Case& c : all) ids.insert(Id(c));
  for (Case& c :
       FittedCases(spaces_, supported_, strength(), UsualWorld(options_.ranks), options_.seed)) {
    if (ids.insert(Id(c)).second) all.push_back(std::move(c));
  }
  chosen_ = KeepChosen(options_, &all);
  return all;
}

void FittedRun::CaseDone(size_t place, const Case& c, const CaseReport& report) {
  if (const std::string cause = CauseOf(report); !cause.empty() && place < drawn_.size())
    failures_[cause].push_back({place, report.id.size(), report});
  Note(c, report);
}

void FittedRun::Note(const Case& c, const CaseReport& report) {
  switch (report.status) {
    case Status::kPass:
    case Status::kPartial:
    case Status::kFail:
    case Status::kWaived:
    case Status::kBounded:
      judged_.push_back(c);
      return;
    case Status::kUnsupported:
      if (HasOwnList(options_)) NoteValues(c);
      if (!IsOfTaken(spaces_, supported_, c)) return;
      if (declined_.empty()) declined_first_ = report.id + ": " + report.reason;
      declined_[Id(c)] = report.reason;
      return;
    default:
      return;
  }
}

void FittedRun::NoteValues(const Case& c) {
  for (const CaseFactors& space : spaces_) {
    if (space.name != SpaceOf(c)) continue;
    const CoveringRow row = space.row_of(c);
    const std::vector<Factor>& factors = space.problem->factors;
    for (size_t i = 0; i < factors.size() && i < row.size(); ++i) {
      if (row[i] >= 0)
        declined_values_.insert({space.name, factors[i].name, At(factors[i].values, row[i])});
    }
  }
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

void FittedRun::AskOpenValues(const JudgeCases& judge, std::vector<CaseReport>* reports) {
  std::vector<OpenValue> open = ValuesToAsk();
  if (options_.random > 0) {  // few draws have not met every value
    std::erase_if(open, [&](const OpenValue& one) {
      return std::none_of(drawn_.begin(), drawn_.end(), [&](const DrawnCase& drawn) {
        return drawn.from->space.name == one.space && HasValue(drawn, one.factor, one.value);
      });
    });
  }
  std::map<std::string, Case> cases;  // by id
  for (const OpenValue& one : open) cases.emplace(Id(one.with_it), one.with_it);
  std::erase_if(cases, [&](const auto& one) { return declined_.contains(one.first); });
  std::vector<Case> to_ask;
  for (const auto& [id, c] : cases) to_ask.push_back(c);
  for (CaseReport& report : judge(to_ask)) {
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
  std::map<std::string, Case> cases;  // by id
  for (const OpenValue& one : open) cases.emplace(Id(one.with_it), one.with_it);
  std::vector<Case> to_ask;
  for (const auto& [id, c] : cases) to_ask.push_back(c);
  std::map<std::string, std::string> declined;
  for (const CaseReport& report : judge(to_ask)) {
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
  std::vector<CaseReport> some = judge(cases);
  for (size_t i = 0; i < some.size(); ++i) {
    Note(cases[i], some[i]);
    if (some[i].status != Status::kUnsupported) reports->push_back(std::move(some[i]));
  }
}

std::vector<CaseReport> FittedRun::AskOn(const JudgeCases& judge, size_t batch) {
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
  ShrinkFailures(judge, batch, &reports);
  return reports;
}

void FittedRun::ShrinkFailures(const JudgeCases& judge, size_t batch,
                               std::vector<CaseReport>* reports) {
  size_t shrunk_causes = 0;
  for (const auto& [cause, failures] : failures_) {
    if (shrunk_causes++ == kMostShrunk) break;
    const Failure& first =
        *std::min_element(failures.begin(), failures.end(), [](const Failure& a, const Failure& b) {
          return std::tie(a.length, a.drawn) < std::tie(b.length, b.drawn);
        });
    Shrunk shrunk = ShrinkCase(drawn_[first.drawn], first.report, judge, batch);
    shrunk_.push_back(cause + ": the first finding of " + std::to_string(failures.size()) +
                      " random cases; smallest case with it: " + shrunk.report.id + " (from " +
                      first.report.id + ", " + std::to_string(shrunk.runs) + " runs)");
    reports->push_back(std::move(shrunk.report));
  }
  if (failures_.size() > kMostShrunk)
    shrunk_.push_back("of " + std::to_string(failures_.size()) + " kinds of failures " +
                      std::to_string(kMostShrunk) + " were shrunk");
}

void FittedRun::Conclude(RunReport* report) const {
  report->facts.push_back("what the engine takes: " + how_);
  if (!Seeds().empty()) report->facts.push_back(Seeds());
  report->facts.insert(report->facts.end(), shrunk_.begin(), shrunk_.end());
  for (const CaseFactors& space : spaces_) {
    const std::string untaken = Untaken(space, supported_);
    if (!untaken.empty()) report->facts.push_back("not taken here, of " + untaken);
  }
  for (const std::string& lost : lost_)
    report->problems.push_back((options_.supports.empty() ? "" : options_.supports + ": ") + lost);
  if (options_.random > 0) return;
  if (!chosen_.empty()) report->facts.push_back(chosen_);
  if (!left_out_.empty()) {
    report->facts.push_back(std::to_string(left_out_.size()) + " cases of the profile " +
                            options_.profile +
                            " were not asked: they have values that it does not take");
  }
  for (std::string& line : Coverage()) report->facts.push_back(std::move(line));
  if (!HasOwnList(options_) && chosen_.empty()) {
    for (std::string& line :
         WouldAddLines(WhatValuesWouldAdd(spaces_, supported_, left_out_, strength(),
                                          UsualWorld(options_.ranks), options_.seed)))
      report->facts.push_back(std::move(line));
  }
  if (added_ > 0)
    report->facts.push_back(std::to_string(added_) +
                            " plain cases were added for what the engine declined in others");
  if (!declined_.empty())
    report->facts.push_back("unsupported, though the engine takes each of its values: " +
                            std::to_string(declined_.size()) +
                            (declined_.size() == 1 ? " case, " : " cases, the first ") +
                            declined_first_);
}

std::vector<Case> CasesOfAllShards(const Options& options, const FittedRun* fitted, int ranks) {
  Options all = options;
  all.shard.clear();
  if (fitted == nullptr) return SelectCases(all, nullptr);
  return FittedRun(all, ranks, fitted->Told()).Cases();
}

}  // namespace shardproof
