#include "conformance/cases/support/learn.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "conformance/common/at.h"

namespace shardproof {
namespace {

struct FactorValue {
  int factor = -1, value = 0;
};
// factor -1: the whole row is asked.
struct Question {
  CoveringRow row;
  FactorValue about = {};
};

// One space, asked in rounds: all cases of a round are asked together.
class Learner {
 public:
  Learner(const CaseFactors& space, const AskCases& ask)
      : space_(space), ask_(ask), problem_(*space.problem), everything_(AllValuesOf(problem_)) {
    for (const Factor& factor : problem_.factors) {
      mask_.emplace_back(factor.values.size(), false);
      attempts_.emplace_back(factor.values.size(), 0);
    }
  }

  int asked() const { return asked_; }
  const ValueMask& mask() const { return mask_; }
  const std::vector<CoveringRow>& rows() const { return rows_; }

  // False: the engine takes none of the cases of this space that were tried.
  bool Learn(int32_t world) {
    FindBases(Defaults(world));
    if (bases_.empty()) return false;
    while (AskOpen(mask_) || AskOpen(everything_)) {
    }
    Ask(PairsOfOpen());
    AskDeclinedAlone();
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
    AddBases(first, {TakeAnswer::kTakes, TakeAnswer::kEnds});
    if (!bases_.empty()) return;
    for (const CoveringRow& from : first) {
      for (const FactorValue& one : AllValues()) {
        if (auto row = Nearest(from, one)) then.push_back(*std::move(row));
      }
    }
    AddBases(then, {TakeAnswer::kTakes});
  }

  // kinds: where none gives the first answer, those that give the second.
  void AddBases(const std::vector<CoveringRow>& rows, const std::vector<TakeAnswer>& kinds) {
    std::vector<Question> questions;
    for (const CoveringRow& row : rows) questions.push_back({row});
    const std::vector<TakeAnswer> answers = Ask(questions);
    for (size_t kind = 0; kind < kinds.size() && bases_.empty(); ++kind) {
      for (size_t i = 0; i < rows.size(); ++i) {
        if (answers[i] != kinds[kind]) continue;
        bases_.push_back(rows[i]);
        Note(rows[i]);
      }
    }
  }

  // It takes all values of the row.
  void Note(const CoveringRow& row) {
    bool fresh = false;
    for (size_t factor = 0; factor < row.size(); ++factor) {
      std::vector<bool>::reference known = mask_[factor][Index(row[factor])];
      fresh = fresh || !known;
      known = true;
    }
    if (fresh) rows_.push_back(row);
  }

  // Also notes what they show. One that ends the engine shows that about its value alone.
  std::vector<TakeAnswer> Ask(const std::vector<Question>& questions) {
    std::vector<Case> cases;
    for (const Question& question : questions) {
      cases.push_back(space_.make(question.row, 1));
      std::string& script = cases.back().instances.front().script;
      if (script == InstanceSpec().script) script.clear();  // create answers for it
    }
    if (cases.empty()) return {};
    asked_ += static_cast<int>(cases.size());
    const std::vector<TakeAnswer> answers = ask_(cases);
    for (size_t i = 0; i < questions.size(); ++i) {
      const auto& [row, about] = questions[i];
      if (answers[i] == TakeAnswer::kTakes) Note(row);
      if (answers[i] != TakeAnswer::kEnds || about.factor < 0) continue;
      std::vector<bool>::reference known = At(mask_, about.factor)[Index(about.value)];
      if (!known) rows_.push_back(row);
      known = true;
    }
    return answers;
  }

  bool IsOpen(const FactorValue& one) const { return !At(mask_, one.factor)[Index(one.value)]; }

  // Where a case takes place, and how ranks are laid out, is not taken together with a feature.
  static bool IsPlace(const std::string& name) {
    static constexpr const char* kPlaces[] = {"world", "place", "order", "strategy", "script",
                                              "tp",    "cp",    "ep",    "pp",       "etp"};
    return std::find(std::begin(kPlaces), std::end(kPlaces), name) != std::end(kPlaces);
  }

  // Values that are declined alone, two at a time.
  std::vector<Question> PairsOfOpen() const {
    std::vector<FactorValue> open;
    for (const FactorValue& one : AllValues()) {
      if (IsOpen(one) && !IsPlace(At(problem_.factors, one.factor).name)) open.push_back(one);
    }
    std::vector<Question> questions;
    for (const FactorValue& one : open) {
      const auto with_one = Nearest(bases_.front(), one);
      for (const FactorValue& other : open) {
        if (!with_one || other.factor <= one.factor) continue;
        const auto both = Nearest(*with_one, other);
        if (both && At(*both, one.factor) == one.value) questions.push_back({*both});
      }
    }
    return questions;
  }

  // What an engine declines because of what it was asked before, in the same process, it takes in a
  // new one.
  void AskDeclinedAlone() {
    for (const FactorValue& one : AllValues()) {
      if (!IsOpen(one)) continue;
      if (auto row = Nearest(bases_.front(), one)) Ask({{*std::move(row), one}});
    }
  }

  // Each value that is not known to be taken, from the base that is next for it, the others being
  // of `among`. False: none could be asked.
  bool AskOpen(const ValueMask& among) {
    std::vector<Question> questions;
    for (const FactorValue& one : AllValues()) {
      size_t& attempts = At(attempts_, one.factor)[Index(one.value)];
      if (!IsOpen(one) || attempts == bases_.size()) continue;
      auto row = NearestRow(problem_, among, bases_[attempts], one.factor, one.value);
      if (!row) continue;
      ++attempts;
      questions.push_back({*std::move(row), one});
    }
    Ask(questions);
    return !questions.empty();
  }

  const CaseFactors& space_;
  const AskCases& ask_;
  const CoveringProblem& problem_;
  const ValueMask everything_;
  ValueMask mask_;                             // what it takes
  std::vector<std::vector<size_t>> attempts_;  // by factor and value: bases it was asked from
  std::vector<CoveringRow> bases_;
  std::vector<CoveringRow> rows_;  // in which a value was taken first
  int asked_ = 0;
};

}  // namespace

Learnt LearnSupport(const std::vector<CaseFactors>& spaces, int32_t world, const AskCases& ask) {
  Learnt learnt;
  for (const CaseFactors& space : spaces) {
    Learner learner(space, ask);
    if (learner.Learn(world)) {
      learnt.supported[space.name] = {ValuesOf(space, learner.mask())};
      learnt.rows[space.name] = learner.rows();
    }
    learnt.asked += learner.asked();
  }
  return learnt;
}

}  // namespace shardproof
