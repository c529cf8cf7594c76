// factor_space.h: how do values of knobs become a covering problem, and its rows cases?
//
// A factor is a name, the values it may have, and how a case is given one of them. Spaces derive
// from this: their factors are the knobs whose rows list values for them (knob.h), and those that
// set several members at once; they say what is legal together. A row of theirs is a case with one
// instance, and the other way round.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/covering.h"
#include "conformance/cases/knob.h"

namespace shardproof {

class FactorSpace {
 public:
  explicit FactorSpace(Space space) : space_(space) {}

  const CoveringProblem& problem() const { return problem_; }
  // The values with which a case is cheap: few ranks, layers, microbatches and calls. -1: all cost
  // the same, or there is no such value.
  CoveringRow Cheap() const;
  // Index of a factor. Throws std::invalid_argument for a name there is not.
  int FactorIndex(const std::string& name) const;
  // The row of a case with one legal instance, -1 where the case has a value that the factor does
  // not list.
  CoveringRow RowOf(const Case& c) const;
  // RowOf the cases that this space counts (SpaceCounting): with one instance, legal, and with no
  // step that must fail before it has shown what its other knobs do.
  std::vector<CoveringRow> RowsOf(const std::vector<Case>& cases) const;
  bool Counts(const Case& c) const;
  // Gives the case a value of a factor.
  void Set(Case& c, int factor, int value) const;

 protected:
  using Setter = std::function<void(Case&, size_t value)>;

  void AddSetter(const std::string& name, const std::vector<std::string>& values, Setter setter);
  // Knobs, in this order. REQUIRES: their rows list values for the space.
  void AddKnobs(const std::vector<std::string>& names);
  // All other knobs whose rows list values for the space, in the table's order.
  void AddOtherKnobs();
  // Sizes of the world.
  void AddWorld(const std::vector<int32_t>& worlds);

  // Gives the case all values of a row, in the factors' order.
  void SetAll(Case& c, const CoveringRow& row) const;

  // Every tuple of the factors' values, the last factor's fastest, and a case that has them.
  using Visitor = std::function<void(const std::vector<uint8_t>& tuple, const Case& c)>;
  // Tuples that begin with values which `goes` refuses are left out; of a case that it is asked
  // about, the later factors have their defaults.
  using Goes = std::function<bool(const Case& begun)>;
  void ForEachTuple(const std::vector<std::string>& factors, const Visitor& visit,
                    const Goes& goes = nullptr) const;
  void AddRelation(const std::vector<std::string>& factors, TupleList tuples);
  void Relate(const std::vector<std::string>& factors,
              const std::function<bool(const Case& c)>& allowed);

 private:
  bool Has(const std::string& name) const;
  void AddKnob(const Knob& knob);

  Space space_;
  CoveringProblem problem_;
  std::vector<Setter> setters_;
};

// The space whose combinations the case adds to.
Space SpaceCounting(const Case& c);

// What etp is, which is no factor: 1 where ranks of tp route parts of the sequence, else tp.
int32_t EtpOf(const InstanceSpec& spec);
// Whether the instance is legal with one token a sample on each rank, whatever its other factors
// are.
bool LegalForOneToken(Case c);
// Whether the instance's owner of the order of collectives (knob schedule) leaves room for its
// other factors, under the overlap or not.
bool CommScheduleGoes(const Case& c);

}  // namespace shardproof
