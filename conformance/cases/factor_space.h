// factor_space.h: how do values of knobs become a covering problem, and its rows cases?
//
// A factor is a name, the values it may have, and how a case is given one of them. Spaces derive
// from this: they list factors and say what is legal together; a row of theirs is a case with one
// instance, and the other way round.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/covering.h"
#include "conformance/cases/real_text.h"

namespace shardproof {

class FactorSpace {
 public:
  const CoveringProblem& problem() const { return problem_; }
  // Index of a factor. Throws std::invalid_argument for a name there is not.
  int FactorIndex(const std::string& name) const;
  // The row of a case with one legal instance, -1 where the case has a value that the factor does
  // not list.
  CoveringRow RowOf(const Case& c) const;

 protected:
  using Setter = std::function<void(Case&, size_t value)>;

  void AddSetter(const std::string& name, const std::vector<std::string>& values, Setter setter);
  // A member of the case, of its instance, or of a part of that.
  template <typename Owner, typename T>
  void Add(const std::string& name, T Owner::*member, const std::vector<T>& values);

  void AddDenseModelFactors();

  // Gives the case a value of a factor; all values of a row, in the factors' order.
  void Set(Case& c, int factor, int value) const;
  void SetAll(Case& c, const CoveringRow& row) const;

  // Every tuple of the factors' values, the last factor's fastest, and a case that has them.
  using Visitor = std::function<void(const std::vector<uint8_t>& tuple, const Case& c)>;
  void ForEachTuple(const std::vector<std::string>& factors, const Visitor& visit) const;
  void AddRelation(const std::vector<std::string>& factors,
                   std::vector<std::vector<uint8_t>> tuples);
  void Relate(const std::vector<std::string>& factors,
              const std::function<bool(const Case& c)>& allowed);

 private:
  static Case& Part(Case& c, Case*) { return c; }
  static InstanceSpec& Part(Case& c, InstanceSpec*) { return c.instances.front(); }
  static ModelConfig& Part(Case& c, ModelConfig*) { return c.instances.front().model; }
  static MoeConfig& Part(Case& c, MoeConfig*) { return c.instances.front().model.moe; }
  static LayerWiseSpec& Part(Case& c, LayerWiseSpec*) { return c.instances.front().layer_wise; }

  CoveringProblem problem_;
  std::vector<Setter> setters_;
};

// Whether the instance is legal with one token a sample, etp being tp, whatever its other factors
// are.
bool LegalForOneToken(Case c);

template <typename Owner, typename T>
void FactorSpace::Add(const std::string& name, T Owner::*member, const std::vector<T>& values) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = values[i];
    if constexpr (std::is_same_v<T, std::string>) {
      shown.push_back(value.empty() ? "none" : value);
    } else if constexpr (std::is_same_v<T, double>) {
      shown.push_back(RealText(value));
    } else {
      shown.push_back(std::to_string(value));
    }
  }
  AddSetter(name, shown, [member, values](Case& c, size_t value) {
    Part(c, static_cast<Owner*>(nullptr)).*member = values[value];
  });
}

}  // namespace shardproof
