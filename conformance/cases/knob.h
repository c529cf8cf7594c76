// knob.h: what is one knob?
//
// One row of the knob table: its name, its token in ids, the values it may have, the values that
// cases combine, when an engine is told of it, and what it means. Parsing of ids, the factors of
// the covering spaces, what engines are told and both documents (knob_text.h) are read off the
// rows. What is refused together is the rows of illegal.h. A row without a name for engines is a
// choice of the case: a size of the model, a place in the world.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/case.h"

namespace shardproof {

// The covering problems whose cases may combine values of a knob: space.h, schedule_space.h,
// layer_wise_space.h, pipeline_space.h.
enum class Space { kDense, kSchedule, kLayerWise, kPipeline };

// When an engine reads a value.
enum class Told {
  kIfSet,     // when it is not the default
  kAlways,    // whatever it is
  kWithGrid,  // if the engine builds its groups itself, and it is not the default
  kNever      // engines see it in tables and groups, or not at all
};

// Which engines the knob is for. Elsewhere it keeps its default.
enum class For { kAll, kMuon, kLayerWise };

struct Knob {
  std::string name;  // what engines ask for; if they are told nothing, what factors are called
  std::string values, meaning;  // columns of abi/KNOBS.md; without a knob: of cases/README.md
  Told told = Told::kIfSet;
  For only = For::kAll;

  // --- ids. No token: no case sets it, or another row's does.
  std::string token;                                                  // as documents show it, "kN"
  std::function<std::string(const InstanceSpec&)> write;              // empty: at the default
  std::function<bool(const std::string& token, InstanceSpec&)> read;  // false: not this row's

  // --- the value
  std::function<std::string(const InstanceSpec&)> text;
  // What engines are told of it in a world of so many ranks instead of `text`; empty: nothing.
  std::function<std::string(const InstanceSpec&, int32_t world)> says;
  std::vector<std::string> words;  // of a knob whose values have names
  std::vector<std::pair<std::string, std::string>> short_words;  // values with a token of their own

  // --- values that a space combines
  struct Factor {
    std::vector<std::string> shown;
    std::function<void(InstanceSpec&, size_t value)> set;
  };
  std::map<Space, Factor> factors;
};

// All of them, in the order of tokens in ids.
const std::vector<Knob>& KnobTable();
// Throws std::invalid_argument for a name there is not.
const Knob& KnobNamed(const std::string& name);

}  // namespace shardproof
