// supported.h: which values of which knobs does an engine take, and which cases are left then?
//
// An engine that implements one strategy of four, and no experts, is asked every pair of what it
// does implement: the covering problem of each space (factor_space.h) is restricted to the values
// that it takes.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/covering.h"
#include "conformance/cases/spaces.h"

namespace shardproof {

// Values by factor, as the space shows them. A factor that is not named keeps its first value, the
// default; worlds and places that are not named are all taken.
using SupportedValues = std::map<std::string, std::set<std::string>>;

inline constexpr int kMostChanges = 5;  // of knobs, from the plainest case to another one

// What an engine takes of one space.
struct Taken {
  SupportedValues values;
  // Values that it takes, but not together: no case has one of each factor's that is named here.
  std::vector<SupportedValues> without = {};
  // Of factors the value that cases have unless a combination asks for another one: one that is
  // taken. Not named: the first that is taken.
  std::map<std::string, std::string> plain = {};
  // Most factors in which a case differs from the plainest one. More: fewer cases for the same
  // pairs, but a mistake of one knob hides behind another one's.
  int changes = kMostChanges;
  bool operator==(const Taken&) const = default;
};

// By name of the space: strategies, experts, layer_wise. Of a space that is not named: nothing.
using Supported = std::map<std::string, Taken>;

// A space of cases, whichever it is.
struct CaseFactors {
  std::string name;  // strategies: space.h; experts: schedule_space.h; layer_wise
  const CoveringProblem* problem = nullptr;
  std::function<Case(const CoveringRow&, uint64_t seed)> make;
  std::function<CoveringRow(const Case&)> row_of;
  std::function<void(Case&, int factor, int value)> set;  // the case is derived again then
};

// All spaces, in worlds of at most `ranks` ranks (0: of any size that the suite knows). They refer
// to `spaces`, which outlives them.
std::vector<CaseFactors> FactorsUpTo(int ranks, Spaces& spaces);

// Whether it is no choice of an engine, but where a case takes place.
bool IsOfTheWorld(const Factor& factor);

// By factor and value: whether the engine takes it. Throws std::invalid_argument that names a
// factor or a value that the space does not have.
using ValueMask = std::vector<std::vector<bool>>;
ValueMask MaskOf(const CaseFactors& space, const SupportedValues& values);
SupportedValues ValuesOf(const CaseFactors& space, const ValueMask& mask);

// The problem with these values only; indices of factors and values stay. Nothing: no row is left.
std::optional<CoveringProblem> Restrict(const CoveringProblem& problem, const ValueMask& mask);
// What the engine takes of the space. Throws as MaskOf().
std::optional<CoveringProblem> TakenOf(const CaseFactors& space, const Taken& taken);
// The values of `plain`, -1 elsewhere. Throws std::invalid_argument that names one not taken.
CoveringRow PlainValues(const CaseFactors& space, const Taken& taken);
// Whether a row has values that are not taken together; a value that is not known is none of them.
bool HasExcluded(const CaseFactors& space, const Taken& taken, const CoveringRow& row);

// The allowed row that has the value of the factor, the other factors' values taken by the mask,
// and differs from `row` in as few factors as can be, the first of several. Nothing: there is none.
// REQUIRES: `row` is whole, and its values are taken.
std::optional<CoveringRow> NearestRow(const CoveringProblem& problem, const ValueMask& mask,
                                      const CoveringRow& row, int factor, int value);
// The mask of everything.
ValueMask AllValuesOf(const CoveringProblem& problem);

}  // namespace shardproof
