// random_cases FROM TO: which legal case does each of these seeds draw? One line a seed: "17
// w4.zero3.k2".
//
// Seeds walk over the three spaces in turn; the row, and the data that is trained on, follow from
// the seed alone.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "conformance/cases/profiles.h"
#include "conformance/cases/spaces.h"

namespace shardproof {
namespace {

// One bit of the seed more or less is another row.
uint64_t Mixed(uint64_t seed) {
  seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9u;
  seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EBu;
  return seed ^ (seed >> 31);
}

template <class Space>
std::string Draw(const Space& space, uint64_t seed) {
  return Id(space.Make(RandomRow(space.problem(), Mixed(seed)), seed));
}

std::string DrawOf(Spaces& spaces, uint64_t seed) {
  switch (seed % 3) {
    case 0:
      return Draw(spaces.Dense(SpaceWorlds("sim")), seed);
    case 1:
      return Draw(ScheduleSpaceOf("sim", spaces), seed);
    default:
      return Draw(LayerWiseSpaceOf("sim", spaces), seed);
  }
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) {
  const uint64_t from = argc == 3 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const uint64_t to = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (from < 1 || to < from) {
    std::fprintf(stderr, "usage: random_cases FROM TO, seeds from 1 on\n");
    return 3;
  }
  try {
    shardproof::Spaces spaces;
    for (uint64_t seed = from; seed <= to; ++seed) {
      std::printf("%llu %s\n", static_cast<unsigned long long>(seed),
                  shardproof::DrawOf(spaces, seed).c_str());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "random_cases: %s\n", error.what());
    return 2;
  }
  return 0;
}
