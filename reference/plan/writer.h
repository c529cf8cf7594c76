// writer.h: how is a plan written down?
#pragma once
#include "reference/plan/gathering.h"
#include "reference/plan/program.h"
#include "reference/plan/reducing.h"

namespace reference {

// The operations of one microbatch, in a pipeline of its pass through one chunk.
struct Pass {
  ChunkPass id;
  std::vector<Operation> operations;
  DeathList deaths;     // by operation
  size_t backward = 0;  // where it begins; a loss in chunks goes on in it with its second chunk
};

// What the three ways to train share.
struct PlanWriter {
  explicit PlanWriter(const PlanFacts& of) : facts(of), gathering(of, plan), reducing(of, plan) {}

  void BeginStep();  // H12, H11
  void EndStep();    // H9, then norm, clip and optimizer

  void Mark(spf_hook hook, int32_t module = 0, int32_t microbatch = -1);
  Step& Add(Do what, ChunkPass of = {-1, 0}, bool on_a2a = false);
  void Open(ChunkPass of, bool chained = false);
  // All operations of a microbatch, one after the other: the way without a schedule. Opens it.
  Pass Open(int32_t microbatch, bool training);
  Step& Run(const Pass& pass, size_t operation, bool on_a2a = false);

  const PlanFacts& facts;
  Plan plan;
  Gathering gathering;
  Reducing reducing;
};

}  // namespace reference
