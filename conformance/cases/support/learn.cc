#include "conformance/cases/support/learn.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "conformance/common/at.h"

namespace shardproof {
namespace {

struct FactorValue {
  int factor = 0, value = 0;
};

// One space, asked in rounds: all cases of a round are asked together.
class Learner {
 public:
  Learner(const CaseFactors& space, const TakesCases& takes)
      : space_(space), takes_(takes), problem_(*space.problem), everything_(AllValuesOf(problem_)) {
    for (const Factor& factor : problem_.factors) {
      mask_.emplace_back(factor.values.size(), false);
      attempts_.emplace_back(factor.values.size(), 0);
    }
  }

  int asked() const { return asked_; }
  const ValueMask& mask() const { return mask_; }
  const CoveringRow& base() const { return bases_.front(); }

  // False: the engine takes none of the cases of this space that were tried.
  bool Learn(int32_t world) {
    FindBases(Defaults(world));
    if (bases_.empty()) return false;
    while (AskOpen(mask_) || AskOpen(everything_)) {
    }
    return true;
  }

 private:
  static size_t Index(int i) { return static_cast<size_t>(i); }

  int FactorNamed(const std::string& name) const {
    for (size_t i = 0; i < problem_.factors.size(); ++i) {
      if (problem_.factors[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }

  std::optional<CoveringRow> Nearest(const CoveringRow& row, const FactorValue& one) const {
    return NearestRow(problem_, everything_, row, one.factor, one.value);
  }

  // Every knob at its first value, in a world of that size if there is one.
  CoveringRow Defaults(int32_t world) const {
    const CoveringRow row(problem_.factors.size(), 0);
    const int factor = FactorNamed("world");
    const std::vector<std::string>& worlds = At(problem_.factors, factor).values;
    const auto found = std::find(worlds.begin(), worlds.end(), std::to_string(world));
    const auto value = found == worlds.end() ? 0 : found - worlds.begin();
    return Nearest(row, {factor, static_cast<int>(value)}).value_or(row);
  }

  std::vector<FactorValue> AllValues() const {
    std::vector<FactorValue> all;
    for (size_t factor = 0; factor < mask_.size(); ++factor) {
      for (size_t value = 0; value < mask_[factor].size(); ++value)
        all.push_back({static_cast<int>(factor), static_cast<int>(value)});
    }
    return all;
  }

  // Each strategy with the defaults; if none is taken, with one more knob at another value.
  void FindBases(const CoveringRow& defaults) {
    std::vector<CoveringRow> first{defaults}, then;
    const int strategy = FactorNamed("strategy");
    for (const FactorValue& one : AllValues()) {
      if (one.factor != strategy || one.value == 0) continue;
      if (auto row = Nearest(defaults, one)) first.push_back(*std::move(row));
    }
    AddBases(first);
    if (!bases_.empty()) return;
    for (const CoveringRow& from : first) {
      for (const FactorValue& one : AllValues()) {
        if (auto row = Nearest(from, one)) then.push_back(*std::move(row));
      }
    }
    AddBases(then);
  }

  void AddBases(const std::vector<CoveringRow>& rows) {
    const std::vector<bool> taken = Ask(rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (taken[i]) bases_.push_back(rows[i]);
    }
  }

  // Also notes what they show.
  std::vector<bool> Ask(const std::vector<CoveringRow>& rows) {
    std::vector<Case> cases;
    for (const CoveringRow& row : rows) {
      cases.push_back(space_.make(row, 1));
      std::string& script = cases.back().instances.front().script;
      if (script == InstanceSpec().script) script.clear();  // create answers for it
    }
    asked_ += static_cast<int>(cases.size());
    std::vector<bool> taken = takes_(cases);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t factor = 0; taken[i] && factor < rows[i].size(); ++factor)
        mask_[factor][Index(rows[i][factor])] = true;
    }
    return taken;
  }

  // Each value that is not known to be taken, from the base that is next for it, the others being
  // of `among`. False: none could be asked.
  bool AskOpen(const ValueMask& among) {
    std::vector<CoveringRow> rows;
    for (const FactorValue& one : AllValues()) {
      size_t& attempts = At(attempts_, one.factor)[Index(one.value)];
      if (At(mask_, one.factor)[Index(one.value)] || attempts == bases_.size()) continue;
      auto row = NearestRow(problem_, among, bases_[attempts], one.factor, one.value);
      if (!row) continue;
      ++attempts;
      rows.push_back(*std::move(row));
    }
    if (!rows.empty()) Ask(rows);
    return !rows.empty();
  }

  const CaseFactors& space_;
  const TakesCases& takes_;
  const CoveringProblem& problem_;
  const ValueMask everything_;
  ValueMask mask_;                             // what it takes
  std::vector<std::vector<size_t>> attempts_;  // by factor and value: bases it was asked from
  std::vector<CoveringRow> bases_;
  int asked_ = 0;
};

}  // namespace

Learnt LearnSupport(const std::vector<CaseFactors>& spaces, int32_t world,
                    const TakesCases& takes) {
  Learnt learnt;
  for (const CaseFactors& space : spaces) {
    Learner learner(space, takes);
    if (learner.Learn(world)) {
      learnt.supported[space.name] = {ValuesOf(space, learner.mask())};
      learnt.bases[space.name] = learner.base();
    }
    learnt.asked += learner.asked();
  }
  return learnt;
}

}  // namespace shardproof
