// askable.h: which mixtures of experts, pipelines and schedules can be asked of an engine at all?
//
// What is refused here is no engine's to refuse: the model does not exist (experts that ep does not
// divide), or an option says nothing (a capacity without experts).
#pragma once
#include <string>

#include "conformance/cases/case.h"

namespace shardproof {

// Each answers what is wrong, naming field and value; empty: nothing.

// Numbers that nothing of this size can be asked with: the other rules compute with them. Before
// all others.
std::string SizeProblem(const InstanceSpec& spec);
// The model's mixture of experts. A router's tables depend on ep, so it is checked here too.
std::string MoeProblem(const InstanceSpec& spec);
// Heads and ffn that the ranks of tp share.
std::string TensorParallelProblem(const InstanceSpec& spec);
std::string ContextParallelProblem(const InstanceSpec& spec);
// What a vocabulary of odd_sizes is a multiple of: ranks of tp divide it, and nobody divides what
// each of them has.
int32_t VocabMultiple(const InstanceSpec& spec);
// Chunks of the loss, which share a sample's tokens.
std::string LossChunksProblem(const InstanceSpec& spec);
// Model chunks and pipeline ranks.
std::string PipelineProblem(const InstanceSpec& spec);
// Loss scale, recomputed modules and what else shapes a schedule.
std::string ScheduleProblem(const InstanceSpec& spec);

// A loss that is not a number, in a step that nobody trains or that nothing keeps from the weights.
std::string NanLossProblem(const InstanceSpec& spec);

// Muon's options without Muon, or numbers that are none (muon.cc).
std::string MuonProblem(const InstanceSpec& spec);

// Each sample must reach every expert exactly once: an expert's gradient is summed over the ranks
// of its expt_dp list, and each of those has the tokens of its ep list. Replicas (tp, pp) hold the
// same samples; with sp ranks of tp have a part of each. REQUIRES: there is a grid.
std::string TokensProblem(const InstanceSpec& spec, int32_t world);

}  // namespace shardproof
