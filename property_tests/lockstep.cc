#include "property_tests/lockstep.h"

#include <exception>
#include <functional>
#include <ostream>
#include <stdexcept>

namespace shardproof {
namespace {

bool Holds(const std::function<bool(const Case&)>& holds, const Case& c, std::ostream& log) {
  try {
    return holds(c);
  } catch (const std::exception& error) {
    log << Id(c) << ": " << error.what() << std::endl;
    return false;
  }
}

}  // namespace

bool CheckInLockstep(const std::string& name, RankAgreement& ranks,
                     const rc::Gen<GeneratedCase>& cases,
                     const std::function<bool(const Case&)>& holds, PropertyOptions options,
                     std::string* counterexample) {
  options.seed = ranks.FromRankZero(PropertySeed(name, options));
  std::ostream silent(nullptr);
  if (ranks.rank() != 0) options.log = &silent;
  bool together = true;
  const bool held = CheckProperty(
      name,
      [&] {
        const GeneratedCase generated = *cases;
        const std::string id = Id(generated.spec);
        const uint64_t drawn = std::hash<std::string>{}(id);
        together = together && ranks.OnAllRanks(ranks.FromRankZero(drawn) == drawn);
        if (!together)
          RC_FAIL("rank " + std::to_string(ranks.rank()) + " drew another case than rank 0: " + id);
        const bool good = ranks.OnAllRanks(Holds(holds, generated.spec, *options.log));
        if (!good && counterexample != nullptr) *counterexample = id;
        RC_ASSERT(good);
      },
      options);
  return held && together;
}

}  // namespace shardproof
