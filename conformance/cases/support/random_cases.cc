#include "conformance/cases/support/random_cases.h"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "conformance/cases/support/fitted_profile.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

constexpr size_t kFewestCalls = 3, kMostCalls = 6;
constexpr size_t kMostBesides = 2, kTriesBesides = 8;  // values of other spaces
// Added to a seed, for a choice of its own.
constexpr uint64_t kOfBesides = uint64_t{1} << 52, kOfNan = uint64_t{1} << 53;

// One bit of the seed more or less is another row. (splitmix64's finish)
uint64_t Mixed(uint64_t seed) {
  seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9u;
  seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EBu;
  return seed ^ (seed >> 31);
}

bool MakesSense(const std::string& script) {
  try {
    ExpandScript(script);
  } catch (const std::invalid_argument&) {
    return false;  // it loads what was not saved
  }
  return script.find_first_of("te") != std::string::npos;
}

// The letters of the scripts that the engine takes.
std::string CallsOf(const DrawFrom& from) {
  std::string calls;
  const std::vector<Factor>& factors = from.space.problem->factors;
  for (size_t factor = 0; factor < factors.size(); ++factor) {
    if (factors[factor].name != "script") continue;
    for (size_t value = 0; value < factors[factor].values.size(); ++value) {
      if (from.mask[factor][value]) calls += factors[factor].values[value];
    }
  }
  std::sort(calls.begin(), calls.end());
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  return calls;
}

// Half of the calls train: what another call leaves behind shows in the steps around it.
std::string RandomScript(const std::string& calls, uint64_t seed) {
  std::string others = calls;
  std::erase(others, 't');
  const std::string trains = others == calls ? calls : "t";
  if (others.empty()) others = trains;
  for (uint64_t attempt = 1;; ++attempt) {
    uint64_t random = Mixed(seed + (attempt << 40));
    std::string script(kFewestCalls + random % (kMostCalls - kFewestCalls + 1), 't');
    for (char& letter : script) {
      random = Mixed(random + 1);
      const std::string& some = random % 2 == 0 ? trains : others;
      letter = some[random / 2 % some.size()];
    }
    if (MakesSense(script)) return script;
  }
}

// Factors in which a row differs from the plainest one.
std::vector<int> Features(const DrawnCase& drawn) {
  std::vector<int> features;
  for (size_t factor = 0; factor < drawn.row.size(); ++factor) {
    if (drawn.row[factor] != drawn.from->plainest[factor])
      features.push_back(static_cast<int>(factor));
  }
  return features;
}

// With these features at the values of the plainest row, and what must change with them.
std::optional<DrawnCase> Without(const DrawnCase& drawn, const std::vector<int>& features) {
  DrawnCase simpler = drawn;
  for (const int factor : features) {
    const auto row = NearestRow(drawn.from->taken, drawn.from->mask, simpler.row, factor,
                                At(drawn.from->plainest, factor));
    if (!row) return std::nullopt;
    simpler.row = *row;
  }
  if (Features(simpler).size() >= Features(drawn).size()) return std::nullopt;
  return simpler;
}

// The case with a change, where that can be asked and is legal.
void Change(Case* c, const std::function<void(Case&)>& change) {
  Case with = *c;
  try {
    change(with);
    Derive(with);
  } catch (const std::invalid_argument&) {  // with so many steps, say
    return;
  }
  if (with.illegal.empty()) *c = std::move(with);
}

bool Lists(const CaseFactors& space, const std::string& factor, const std::string& value) {
  return std::ranges::any_of(space.problem->factors, [&](const Factor& one) {
    return one.name == factor && std::ranges::count(one.values, value) > 0;
  });
}

// What the engine takes of other spaces than the drawn one, which does not list it.
std::vector<ValueBesides> AllBesides(const std::vector<DrawFrom>& from, const DrawFrom& own) {
  std::vector<ValueBesides> all;
  for (const DrawFrom& other : from) {
    const std::vector<Factor>& factors = other.space.problem->factors;
    for (size_t factor = 0; &other != &own && factor < factors.size(); ++factor) {
      if (IsOfTheWorld(factors[factor])) continue;
      for (size_t value = 0; value < factors[factor].values.size(); ++value) {
        if (!other.mask[factor][value] ||
            Lists(own.space, factors[factor].name, factors[factor].values[value]))
          continue;
        all.push_back({&other, static_cast<int>(factor), static_cast<int>(value)});
      }
    }
  }
  return all;
}

std::vector<DrawnCase> WithoutOneBesides(const DrawnCase& drawn) {
  std::vector<DrawnCase> all(drawn.besides.size(), drawn);
  for (size_t i = 0; i < all.size(); ++i)
    all[i].besides.erase(all[i].besides.begin() + std::ptrdiff_t(i));
  return all;
}

// Without any of its values of other spaces it is another case, so that none stands for another,
// and one that has no more features: a value may also take some away ("recompute nothing").
bool EachAdds(const DrawnCase& drawn) {
  const auto features = [](const std::string& id) { return std::ranges::count(id, '.'); };
  const std::string id = Id(MakeCase(drawn));
  return std::ranges::all_of(WithoutOneBesides(drawn), [&](const DrawnCase& without) {
    const std::string other = Id(MakeCase(without));
    return other != id && features(other) <= features(id);
  });
}

void AddBesides(const std::vector<DrawFrom>& from, DrawnCase* drawn) {
  const std::vector<ValueBesides> all = AllBesides(from, *drawn->from);
  uint64_t random = Mixed(drawn->seed + kOfBesides);
  for (size_t i = 0; i < kTriesBesides && drawn->besides.size() < kMostBesides && !all.empty();
       ++i) {
    random = Mixed(random + 1);
    DrawnCase with = *drawn;
    with.besides.push_back(all[random % all.size()]);
    if (EachAdds(with) && drawn->from->fits(MakeCase(with))) *drawn = std::move(with);
  }
}

}  // namespace

std::vector<DrawFrom> WhatToDrawFrom(const std::vector<CaseFactors>& spaces,
                                     const Supported& supported, int32_t world) {
  std::vector<DrawFrom> all;
  for (const CaseFactors& space : spaces) {
    const auto values = supported.find(space.name);
    if (values == supported.end()) continue;
    ValueMask mask = MaskOf(space, values->second.values);
    auto taken = TakenOf(space, values->second);
    if (!taken) continue;
    CoveringRow plainest = PlainestRow(space, *taken, values->second, world);
    all.push_back({space, std::move(mask), *std::move(taken), std::move(plainest),
                   [spaces, supported, name = space.name](const Case& c) {
                     return SpaceOf(c) == name && Fits(spaces, supported, c);
                   }});
  }
  return all;
}

Supported AllOf(const std::vector<CaseFactors>& spaces) {
  Supported all;
  for (const CaseFactors& space : spaces)
    all[space.name] = {ValuesOf(space, AllValuesOf(*space.problem))};
  return all;
}

Case MakeCase(const DrawnCase& drawn) {
  Case c = drawn.from->space.make(drawn.row, drawn.seed);
  for (const ValueBesides& one : drawn.besides)
    Change(&c, [&](Case& with) { one.from->space.set(with, one.factor, one.value); });
  if (!drawn.script.empty())
    Change(&c, [&](Case& with) { with.instances.front().script = drawn.script; });
  if (drawn.nan_loss && !c.instances.front().check_for_nan)  // else the run only ends
    Change(&c, [](Case& with) { with.instances.front().model.nan_loss = true; });
  return c;
}

DrawnCase Draw(const std::vector<DrawFrom>& from, uint64_t seed) {
  const DrawFrom& space = from[seed % from.size()];
  DrawnCase drawn{&space, RandomRow(space.taken, Mixed(seed)), {}, "", seed};
  const uint64_t round = seed / from.size();
  if (round % 2 == 1) drawn.script = RandomScript(CallsOf(space), seed);
  if (round % 4 >= 2) AddBesides(from, &drawn);
  drawn.nan_loss = Mixed(seed + kOfNan) % 2 == 1;
  return drawn;
}

std::vector<DrawnCase> Simpler(const DrawnCase& drawn) {
  std::vector<DrawnCase> simpler;
  std::set<std::string> ids{Id(MakeCase(drawn))};
  const auto add = [&](DrawnCase one) {
    if (ids.insert(Id(MakeCase(one))).second) simpler.push_back(std::move(one));
  };
  if (drawn.nan_loss) {
    DrawnCase numbers = drawn;
    numbers.nan_loss = false;
    add(numbers);
  }
  if (drawn.besides.size() > 1) {
    DrawnCase own = drawn;
    own.besides.clear();
    add(own);
  }
  for (const DrawnCase& without : WithoutOneBesides(drawn)) add(without);
  const std::vector<int> features = Features(drawn);
  for (size_t piece = features.size(); piece > 0; piece /= 2) {
    for (size_t first = 0; first < features.size(); first += piece) {
      const size_t last = std::min(first + piece, features.size());
      const auto without = Without(drawn, {features.begin() + std::ptrdiff_t(first),
                                           features.begin() + std::ptrdiff_t(last)});
      if (without) add(*without);
    }
  }
  if (!drawn.script.empty()) {
    DrawnCase usual = drawn;
    usual.script.clear();
    add(usual);
  }
  for (size_t i = 0; i < drawn.script.size(); ++i) {
    DrawnCase shorter = drawn;
    shorter.script.erase(i, 1);
    if (!shorter.script.empty() && MakesSense(shorter.script)) add(shorter);
  }
  DrawnCase plain_data = drawn;
  plain_data.seed = 1;
  add(plain_data);
  return simpler;
}

}  // namespace shardproof
