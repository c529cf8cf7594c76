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
#include "conformance/cases/support/learn.h"
#include "conformance/common/read_file.h"
#include "conformance/runner/chosen.h"
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

bool IsFitted(const Options& options) {
  if (options.random > 0) return true;
  if (!options.cases.empty() || options.profile == "smoke") return false;
  return !options.supports.empty() ||
         (options.impl.starts_with("lib:") && options.fabric != "nccl");
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
  const Learnt learnt =
      LearnSupport(spaces_, UsualWorld(ranks), [&](const std::vector<Case>& cases) {
        return AskEngine(options.impl, options.stall_seconds, cases);
      });
  supported_ = learnt.supported;
  how_ = "asked in " + std::to_string(learnt.asked) + " cases";
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

std::vector<Case> FittedRun::Cases() {
  if (options_.random > 0) return RandomCases();
  std::vector<Case> all =
      Profile(options_.profile, options_.fabric, kept_, options_.seed, options_.ranks);
  std::erase_if(all, [&](const Case& c) { return options_.ranks > 0 && c.world > options_.ranks; });
  if (TakesEverything(spaces_, supported_)) {
    chosen_ = KeepChosen(options_, &all);
    return all;
  }
  const size_t there_are = all.size();
  std::erase_if(all, [&](const Case& c) { return !Fits(spaces_, supported_, c); });
  not_asked_ = there_are - all.size();
  std::set<std::string> ids;
  for (const Case& c : all) ids.insert(Id(c));
  const int strength = options_.profile == "full" ? 3 : 2;
  for (Case& c :
       FittedCases(spaces_, supported_, strength, UsualWorld(options_.ranks), options_.seed)) {
    if (ids.insert(Id(c)).second) all.push_back(std::move(c));
  }
  chosen_ = KeepChosen(options_, &all);
  return all;
}

void FittedRun::CaseDone(size_t place, const Case& c, const CaseReport& report) {
  if (const std::string cause = CauseOf(report); !cause.empty() && place < drawn_.size())
    failures_[cause].push_back({place, report.id.size(), report});
  switch (report.status) {
    case Status::kPass:
    case Status::kPartial:
    case Status::kFail:
    case Status::kWaived:
      judged_.push_back(c);
      return;
    case Status::kUnsupported:
      if (!IsOfTaken(spaces_, supported_, c)) return;
      if (declined_++ == 0) declined_first_ = report.id + ": " + report.reason;
      return;
    default:
      return;
  }
}

std::vector<CaseReport> FittedRun::ShrinkFailures(const JudgeCases& judge, size_t batch) {
  std::vector<CaseReport> smallest;
  for (const auto& [cause, failures] : failures_) {
    if (smallest.size() == kMostShrunk) break;
    const Failure& first =
        *std::min_element(failures.begin(), failures.end(), [](const Failure& a, const Failure& b) {
          return std::tie(a.length, a.drawn) < std::tie(b.length, b.drawn);
        });
    Shrunk shrunk = ShrinkCase(drawn_[first.drawn], first.report, judge, batch);
    shrunk_.push_back(cause + ": the first finding of " + std::to_string(failures.size()) +
                      " random cases; smallest case with it: " + shrunk.report.id + " (from " +
                      first.report.id + ", " + std::to_string(shrunk.runs) + " runs)");
    smallest.push_back(std::move(shrunk.report));
  }
  return smallest;
}

void FittedRun::Conclude(RunReport* report) const {
  report->facts.push_back("what the engine takes: " + how_);
  if (!Seeds().empty()) report->facts.push_back(Seeds());
  report->facts.insert(report->facts.end(), shrunk_.begin(), shrunk_.end());
  for (const CaseFactors& space : spaces_) {
    const std::string untaken = Untaken(space, supported_);
    if (!untaken.empty()) report->facts.push_back("not taken, of " + untaken);
  }
  if (options_.random > 0) return;
  if (!chosen_.empty()) report->facts.push_back(chosen_);
  if (not_asked_ > 0) {
    report->facts.push_back(std::to_string(not_asked_) + " cases of the profile " +
                            options_.profile +
                            " were not asked: they have values that it does not take");
  }
  const int strength = options_.profile == "full" ? 3 : 2;
  for (std::string& line : FittedCoverage(spaces_, supported_, judged_, strength))
    report->facts.push_back(std::move(line));
  if (declined_ == 0) return;
  const std::string declined =
      "unsupported, though the engine takes each of its values: " + std::to_string(declined_) +
      (declined_ == 1 ? " case, " : " cases, the first ") + declined_first_;
  if (options_.supports.empty() || options_.command == Options::Command::kCheck) {
    report->facts.push_back(declined);
  } else {
    report->problems.push_back(options_.supports + ": " + declined);
  }
}

}  // namespace shardproof
