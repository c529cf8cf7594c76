// suite_for_test.h: what do the checks that run under mpirun share?
//
// Every check runs on all processes in lockstep; rank 0 judges.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/fabric/fabric.h"
#include "conformance/fabric/mpi/mpi_world.h"

namespace shardproof::mpi_test {

using Main = std::function<std::string(Fabric&)>;

struct Suite {
  MpiWorld* world;
  int failures = 0, checks = 0;
  MpiOptions options = {};

  CaseEnd Run(int n, const Main& rank_main) { return world->RunCase(n, options, rank_main); }
  // Counts on rank 0 only.
  void Expect(bool good, const std::string& what, const std::string& seen = "");
  void ExpectOk(const CaseEnd& end, const std::string& what);  // every rank returned "ok"
  void ExpectHealthy();                                        // a small case works
};

std::vector<int32_t> Everybody(const Fabric& f);
bool Has(const std::string& text, const std::string& part);

// Small integers, exact in every dtype.
void Put(std::byte* data, uint64_t i, int32_t dtype, int value);
int Get(const std::byte* data, uint64_t i, int32_t dtype);
// What member m contributes at element i; sums of 8 stay below 256.
int Value(int m, uint64_t i);

// An operation on all of block, in place, f32.
CommOp Simple(int kind, int32_t group, int32_t stream, const Block& block, const std::string& what);

struct Shape {
  int kind, dtype;
  uint64_t count;
};
// Runs one collective as member me of n and compares with the closed form; "" or what is wrong.
std::string TryCollective(Fabric& f, int32_t stream, int32_t group, int me, int n,
                          const Shape& shape);
// One all_reduce; "ok" or what is wrong.
std::string HealthyMain(Fabric& f);

void CheckOperations(Suite& suite);  // operations_for_test.cc
void CheckEndings(Suite& suite);     // endings_for_test.cc

}  // namespace shardproof::mpi_test
