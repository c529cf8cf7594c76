// world_evidence.h: how does a run of many ranks leave the process of its engine?
//
// As shapes and names (checks/symmetry/compact_world.h): the ranks run one after the other, and of
// those that are alike the trace is kept once.
#pragma once
#include "conformance/cases/case.h"
#include "conformance/checks/symmetry/compact_world.h"
#include "conformance/common/frame.h"
#include "conformance/runner/dry_run.h"

namespace shardproof {

// In the process of the engine. Throws as RunDry does.
Frame RunManyDry(const Case& c, const Models& models, const Plugin& plugin,
                 const SimRunOptions& options);

// What that gave. It comes from a process that ran foreign code: throws std::runtime_error unless
// it is a world of the case's ranks, each of which is a member of each of its groups.
symmetry::CompactWorld ManyRanksOf(const FrameView& fields, const Case& c);

}  // namespace shardproof
