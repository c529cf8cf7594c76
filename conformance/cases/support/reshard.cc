#include "conformance/cases/support/reshard.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "conformance/cases/support/fitted_profile.h"
#include "conformance/cases/support/reshard_parts.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

constexpr int kMostWorld = 8;     // larger ones show nothing new, and take longer
constexpr size_t kFewValues = 4;  // each two of them are changed into each other
constexpr uint64_t kFar = 6;      // pairs of rows drawn at random
constexpr uint64_t kDraws = 40;   // for each

// Two values of a factor, either of which a checkpoint may be saved under.
struct Change {
  int factor = 0, from = 0, to = 0;
};

// Makes cases in one space, and knows what is still to be asked there.
class Resharding {
 public:
  Resharding(const CaseFactors& space, const Supported& supported, int32_t world, uint64_t seed)
      : space_(space), seed_(seed) {
    const auto taken = supported.find(space.name);
    if (taken == supported.end()) return;
    const auto some = TakenOf(space, taken->second);
    if (!some) return;
    problem_ = *some;
    mask_ = MaskOf(space, taken->second.values);
    LeaveLargeWorlds();
    base_ = Demanding(PlainestRow(space, problem_, taken->second, world));
    FindGoals();
  }

  // The plainest case with state that is sharded, if the engine takes one.
  std::optional<Case> Base() const {
    return base_.empty() ? std::nullopt : std::optional(space_.make(base_, seed_));
  }

  std::vector<Case> Cases() {
    if (base_.empty()) return {};
    while (!open_.empty()) AddChange();
    while (!trained_.empty()) AddTrained();
    for (uint64_t i = 0; i < kFar; ++i) AddFar(i);
    return std::move(cases_);
  }

 private:
  const std::vector<Factor>& factors() const { return problem_.factors; }

  void LeaveLargeWorlds() {
    for (size_t f = 0; f < factors().size(); ++f) {
      if (factors()[f].name != "world") continue;
      std::vector<bool> small = mask_[f];
      for (size_t v = 0; v < small.size(); ++v)
        if (std::stoi(factors()[f].values[v]) > kMostWorld) small[v] = false;
      if (std::count(small.begin(), small.end(), true) > 0) mask_[f] = small;
    }
  }

  // What most is kept of and cut in: an optimizer with state, a strategy that shards.
  CoveringRow Demanding(CoveringRow row) const {
    for (const auto& [name, values] :
         {std::pair{"optimizer", std::vector<std::string>{"adamw", "muon"}},
          {"strategy", {"optim_grads_params", "optim_grads", "optim"}}}) {
      bool found = false;
      for (const std::string& value : values) {
        if (found) break;
        const auto [factor, index] = Find(name, value);
        if (index < 0) continue;
        const auto with = NearestRow(problem_, mask_, row, factor, index);
        if (with) row = *with;
        found = with.has_value();
      }
    }
    return row;
  }

  // The indices of a factor and of a value that is taken; -1: there is none.
  std::pair<int, int> Find(const std::string& name, const std::string& value) const {
    for (size_t f = 0; f < factors().size(); ++f) {
      if (factors()[f].name != name) continue;
      for (size_t v = 0; v < mask_[f].size(); ++v) {
        if (mask_[f][v] && factors()[f].values[v] == value)
          return {static_cast<int>(f), static_cast<int>(v)};
      }
    }
    return {-1, -1};
  }

  void FindGoals() {
    for (size_t f = 0; f < factors().size(); ++f) {
      std::vector<int> values;
      for (size_t v = 0; v < mask_[f].size(); ++v)
        if (mask_[f][v]) values.push_back(static_cast<int>(v));
      const std::string& name = factors()[f].name;
      const int factor = static_cast<int>(f);
      if (MayChangeBetweenLegs(name) && !Follows(name)) AddChanges(factor, values);
      if (!IsTrained(name)) continue;
      for (const int value : values)
        if (value != base_[f]) trained_.push_back({factor, value});
    }
  }

  void AddChanges(int factor, const std::vector<int>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = i + 1; j < values.size(); ++j) {
        const bool neighbours = j == i + 1 || (i == 0 && j + 1 == values.size());
        if (values.size() <= kFewValues || neighbours)
          open_.push_back({factor, values[i], values[j]});
      }
    }
  }

  std::optional<CoveringRow> With(const std::optional<CoveringRow>& row, int factor,
                                  int value) const {
    return row ? NearestRow(problem_, mask_, *row, factor, value) : std::nullopt;
  }

  // The other row, with the values of what is trained that this one has; nothing: it cannot.
  std::optional<CoveringRow> Alike(const CoveringRow& row, std::optional<CoveringRow> other) const {
    for (size_t f = 0; f < row.size() && other; ++f) {
      if (!MayChangeBetweenLegs(factors()[f].name) && (*other)[f] != row[f])
        other = With(other, static_cast<int>(f), row[f]);
    }
    for (size_t f = 0; f < row.size() && other; ++f) {
      if (!MayChangeBetweenLegs(factors()[f].name) && (*other)[f] != row[f]) return std::nullopt;
    }
    return other;
  }

  bool TakesMicrobatches() const {
    for (size_t f = 0; f < factors().size(); ++f) {
      if (factors()[f].name == "microbatches")
        return std::count(mask_[f].begin(), mask_[f].end(), true) > 1;
    }
    return true;
  }

  // Saved under one row, gone on with under the other, and back.
  bool Add(const CoveringRow& one, const CoveringRow& other) {
    const auto c = ThereAndBack(space_.make(one, seed_), space_.make(other, seed_),
                                TakesMicrobatches(), cases_.size());
    if (!c) return false;
    if (ids_.insert(Id(*c)).second) cases_.push_back(*c);
    return true;
  }

  // The next change, with one more that goes with it, of a model that has not been asked.
  void AddChange() {
    const Change change = open_.front();
    open_.erase(open_.begin());
    std::optional<CoveringRow> one = With(base_, change.factor, change.from);
    std::optional<CoveringRow> other = With(one, change.factor, change.to);
    if (other) one = Alike(*other, one);
    if (!one || !other) return;
    const auto rows = WithAnother(*one, *other);
    for (const auto& [a, b] : WithTrained(rows.first, rows.second)) {
      if (Add(a, b)) return Close(a, b);
    }
    if (Add(rows.first, rows.second)) return Close(rows.first, rows.second);
    if (Add(*one, *other)) Close(*one, *other);
  }

  using TwoRows = std::pair<CoveringRow, CoveringRow>;

  TwoRows WithAnother(const CoveringRow& one, const CoveringRow& other) const {
    for (const Change& change : open_) {
      const auto at = static_cast<size_t>(change.factor);
      if (one[at] != change.from || other[at] != change.from) continue;
      const auto further = Alike(one, With(other, change.factor, change.to));
      if (!further || !Keeps(other, *further, at)) continue;
      return {one, *further};
    }
    return {one, other};
  }

  // Whether rows differ in this factor at most, and in what follows.
  bool Keeps(const CoveringRow& row, const CoveringRow& other, size_t factor) const {
    for (size_t f = 0; f < row.size(); ++f)
      if (f != factor && row[f] != other[f] && !Follows(factors()[f].name)) return false;
    return true;
  }

  // The rows with each value of what is trained that is open, as far as it changes nothing else.
  std::vector<TwoRows> WithTrained(const CoveringRow& one, const CoveringRow& other) const {
    std::vector<TwoRows> all;
    for (const auto& [factor, value] : trained_) {
      const auto a = With(one, factor, value), b = With(other, factor, value);
      const auto at = static_cast<size_t>(factor);
      if (a && b && Keeps(one, *a, at) && Keeps(other, *b, at)) all.push_back({*a, *b});
    }
    return all;
  }

  void AddTrained() {
    const auto [factor, value] = trained_.front();
    trained_.erase(trained_.begin());
    const auto one = With(base_, factor, value);
    if (!one) return;
    for (const char* name : {"world", "strategy"}) {
      for (size_t f = 0; f < factors().size(); ++f) {
        if (factors()[f].name != name) continue;
        for (size_t v = mask_[f].size(); v-- > 0;) {
          const int to = static_cast<int>(v);
          if (!mask_[f][v] || to == (*one)[f]) continue;
          const auto other = Alike(*one, With(one, static_cast<int>(f), to));
          if (other && (*other)[f] == to && Add(*one, *other)) return Close(*one, *other);
        }
      }
    }
  }

  // Two rows that have what is trained in common, and nothing else on purpose.
  void AddFar(uint64_t number) {
    for (uint64_t draw = 0; draw < kDraws; ++draw) {
      const uint64_t seed = seed_ + 1000 * number + 2 * draw;
      const auto one = Alike(base_, RandomRow(problem_, seed));
      const auto other = Alike(base_, RandomRow(problem_, seed + 1));
      if (one && other && Small(*one) && Small(*other) && *one != *other && Add(*one, *other))
        return;
    }
  }

  bool Small(const CoveringRow& row) const {
    for (size_t f = 0; f < row.size(); ++f)
      if (!At(mask_[f], row[f])) return false;
    return true;
  }

  // What these rows have asked is no longer open.
  void Close(const CoveringRow& a, const CoveringRow& b) {
    std::erase_if(open_, [&](const Change& change) {
      const auto at = static_cast<size_t>(change.factor);
      return std::minmax(a[at], b[at]) == std::minmax(change.from, change.to);
    });
    std::erase_if(trained_, [&](const auto& goal) {
      return a[static_cast<size_t>(goal.first)] == goal.second;
    });
  }

  const CaseFactors& space_;
  const uint64_t seed_;
  CoveringProblem problem_;
  ValueMask mask_;
  CoveringRow base_;  // empty: the engine takes nothing of the space
  std::vector<Change> open_;
  std::vector<std::pair<int, int>> trained_;  // factor, value
  std::set<std::string> ids_;
  std::vector<Case> cases_;
};

}  // namespace

std::vector<Case> ReshardCases(const std::vector<CaseFactors>& spaces, const Supported& supported,
                               int32_t world, uint64_t seed) {
  std::vector<Case> cases;
  std::map<std::string, Case> bases;
  for (const CaseFactors& space : spaces) {
    Resharding resharding(space, supported, world, seed);
    if (const auto base = resharding.Base()) bases.emplace(space.name, *base);
    for (Case& c : resharding.Cases()) cases.push_back(std::move(c));
  }
  const auto dense = bases.find("strategies"), dealt = bases.find("layer_wise");
  if (dense == bases.end() || dealt == bases.end()) return cases;
  for (const auto& [one, other] : {std::pair{dense, dealt}, {dealt, dense}}) {
    if (auto c = ThereAndBack(one->second, other->second, false, cases.size()))
      cases.push_back(std::move(*c));
  }
  return cases;
}

}  // namespace shardproof
