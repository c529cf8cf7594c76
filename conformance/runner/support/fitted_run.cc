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
#include "conformance/checks/base/reduces.h"
#include "conformance/common/at.h"
#include "conformance/common/read_file.h"
#include "conformance/runner/chosen.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/support/ask_engine.h"
#include "conformance/runner/support/supports_file.h"

namespace shardproof {
namespace {

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
  if (options.fabric == "dry" || (of_sim && options.fabric != "sim")) return false;
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

int32_t FittedRun::UsualWorld(int ranks) { return ranks == 0 ? 4 : ranks; }

std::string FittedRun::Told() const { return SupportsText(supported_, how_); }

std::string FittedRun::Seeds() const {
  if (options_.random == 0) return "";
  const uint64_t last = options_.seed + static_cast<uint64_t>(options_.random) - 1;
  return "random cases of seeds " + std::to_string(options_.seed) + " to " + std::to_string(last) +
         ", and combinations that must be refused";
}

void FittedRun::KeepRunnable(std::vector<Case>* cases) {
  const bool some = !cases->empty();
  not_for_fabric_ +=
      std::erase_if(*cases, [&](const Case& c) { return !NotForFabric(c, options_).empty(); });
  if (some && cases->empty())
    throw std::invalid_argument(std::string("no case is left: ") + kAveragesOfNccl);
}

std::vector<Case> FittedRun::RandomCases() {
  from_ = WhatToDrawFrom(spaces_, supported_, UsualWorld(options_.ranks));
  std::vector<Case> cases;
  for (int i = 0; i < options_.random && !from_.empty(); ++i) {
    DrawnCase drawn = Draw(from_, options_.seed + static_cast<uint64_t>(i));
    Case c = MakeCase(drawn);
    if (!NotForFabric(c, options_).empty()) {
      ++not_for_fabric_;
      continue;
    }
    drawn_.push_back(std::move(drawn));
    cases.push_back(std::move(c));
  }
  if (drawn_.empty()) return cases;  // an engine that takes nothing proves nothing by refusing
  for (Case& c : RefusedCases()) cases.push_back(std::move(c));
  return cases;
}

// As many as random cases, if there are so many; which ones come first is the seed's.
std::vector<Case> FittedRun::RefusedCases() const {
  std::vector<Case> refused = IllegalCases();
  std::erase_if(refused,
                [&](const Case& c) { return options_.ranks > 0 && MostRanks(c) > options_.ranks; });
  if (refused.empty()) return refused;
  std::rotate(refused.begin(),
              refused.begin() + static_cast<std::ptrdiff_t>(options_.seed % refused.size()),
              refused.end());
  refused.resize(std::min(refused.size(), static_cast<size_t>(options_.random)));
  return refused;
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
    KeepRunnable(&chosen);
    return chosen;
  }
  std::vector<Case> all =
      Profile(options_.profile, options_.fabric, kept_, options_.seed, options_.ranks);
  std::erase_if(all,
                [&](const Case& c) { return options_.ranks > 0 && MostRanks(c) > options_.ranks; });
  const bool all_ranks = options_.ranks == 0 || options_.ranks >= 8;
  if (all_ranks && TakesEverything(spaces_, supported_)) {
    chosen_ = KeepChosen(options_, &all);
    KeepRunnable(&all);
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
  KeepRunnable(&all);
  return all;
}

void FittedRun::CaseDone(size_t place, const Case& c, const CaseReport& report) {
  if (const std::string cause = CauseOf(report); !cause.empty() && place < drawn_.size())
    failures_[cause].push_back({place, report});
  Note(c, report);
}

namespace {

// Some engine of the case trains a parameter that is on several ranks: its gradient is reduced.
bool RanksShareGradients(const Case& c) {
  return std::ranges::any_of(c.instances, [](const InstanceSpec& one) {
    return MostRanksOfAParameter(one) > 1 && one.script.find('t') != std::string::npos;
  });
}

}  // namespace

void FittedRun::Note(const Case& c, const CaseReport& report) {
  switch (report.status) {
    case Status::kPass:
    case Status::kPartial:
    case Status::kFail:
    case Status::kWaived:
    case Status::kBounded:
      judged_.push_back(c);
      judged_shared_ |= c.illegal.empty() && RanksShareGradients(c);
      return;
    case Status::kUnsupported:
      if (HasOwnList(options_)) NoteValues(c);
      if (!IsOfTaken(spaces_, supported_, c)) return;
      if (declined_shared_.empty() && RanksShareGradients(c))
        declined_shared_ = report.id + " (" + report.reason + ")";
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

// A part of the cases, or some at random, need not have one in which ranks share a parameter.
bool FittedRun::NothingSharedWasJudged() const {
  const bool whole = options_.shard.empty() && options_.select.empty() &&
                     options_.exclude.empty() && options_.random == 0 && !HasOwnList(options_);
  return whole && !judged_.empty() && !declined_shared_.empty() && !judged_shared_;
}

void FittedRun::Conclude(RunReport* report) const {
  report->facts.push_back("what the engine takes: " + how_);
  if (!Seeds().empty()) report->facts.push_back(Seeds());
  report->facts.insert(report->facts.end(), shrunk_.begin(), shrunk_.end());
  for (const CaseFactors& space : spaces_) {
    const std::string untaken = Untaken(space, supported_);
    if (!untaken.empty()) report->facts.push_back("not taken here, of " + untaken);
  }
  for (const std::string& one : not_askable_) report->facts.push_back("not asked: " + one);
  for (const std::string& lost : lost_)
    report->problems.push_back((options_.supports.empty() ? "" : options_.supports + ": ") + lost);
  if (report->cut_short.empty() && NothingSharedWasJudged())
    report->problems.push_back(
        "in no case that was judged is a parameter trained on several data-parallel ranks: the "
        "engine "
        "declined all of those, such as " +
        declined_shared_ + ", so that no reduction over ranks was judged");
  if (not_for_fabric_ > 0)
    report->facts.push_back("cases: " + std::to_string(not_for_fabric_) + " not asked because " +
                            kAveragesOfNccl);
  if (!counts()) return;
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
