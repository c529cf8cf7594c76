// random_cases FROM TO: which legal case does each of these seeds draw? One line a seed: "17
// w4.zero3.k2".
#include "conformance/cases/support/random_cases.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

int main(int argc, char** argv) {
  const uint64_t from = argc == 3 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const uint64_t to = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (from < 1 || to < from) {
    std::fprintf(stderr, "usage: random_cases FROM TO, seeds from 1 on\n");
    return 3;
  }
  try {
    shardproof::Spaces kept;
    const std::vector<shardproof::CaseFactors> spaces = shardproof::FactorsUpTo(0, kept);
    const std::vector<shardproof::DrawFrom> all =
        shardproof::WhatToDrawFrom(spaces, shardproof::AllOf(spaces), 4);
    for (uint64_t seed = from; seed <= to; ++seed) {
      std::printf("%llu %s\n", static_cast<unsigned long long>(seed),
                  Id(MakeCase(shardproof::Draw(all, seed))).c_str());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "random_cases: %s\n", error.what());
    return 2;
  }
  return 0;
}
