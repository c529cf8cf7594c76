// gpu_step_time.h: how long is a training step on GPUs, how much of it is communication that
// nothing hides, and what do the engine and the recording add?
//
// All times are between time stamps in streams (CUDA events), taken when the device has nothing
// else to do. A round runs four variants one after another; figures are medians of rounds, with the
// smallest and the largest.
#pragma once
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/runner/nccl/kit.h"
#include "conformance/runner/plugin.h"
#include "conformance/trace/event.h"

namespace shardproof {

struct StepTimeOptions {
  int ranks = 2;
  std::string gemm = "tf32";
  int rounds = 2, steps = 3,
      warmup = 1;     // steps that count, and those before them; then one is replayed `steps` times
  int tokens = 1024;  // of a rank and step
  bool tiny = false;  // a model for tests of the program
  double case_seconds = 80;
};

// One variant of one round, in milliseconds.
struct VariantTimes {
  std::vector<double> steps;  // with the engine
  std::vector<double>
      bare;  // the same kernels on one stream, without engine and without communication
};

// A transformer of 516 million parameters (or a tiny one), sharded over `ranks` (ZeRO-3), AdamW,
// bf16 parameters and wires, no quantisers. overlap: reductions and
// gathers beside compute, one unit gathered ahead; else none.
Case StepTimeCase(const StepTimeOptions& options, int ranks, bool overlap);
int64_t ParameterCount(const Case& c);

struct StepTimeRound {
  VariantTimes alone, alone_recorded;  // 1 rank; recording off, and at level order
  VariantTimes apart, overlapped;      // all ranks, recording off; without and with overlap
};

// The figures as a table, one line each: name, median, least and most.
std::string StepTimeTable(const StepTimeOptions& options, const std::vector<StepTimeRound>& rounds);

// Runs all rounds in rank processes. Throws std::runtime_error with the rank and what it said.
// facts: of the machine.
std::vector<StepTimeRound> RunStepTimes(const StepTimeOptions& options, const NcclKit& kit,
                                        const Plugin& plugin, std::vector<std::string>* facts);

}  // namespace shardproof
