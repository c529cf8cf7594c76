// knob_rows.h: which knobs are there?
//
// In the order of their tokens in ids. The first row is the strategy, which every instance says.
#pragma once
#include <vector>

#include "conformance/cases/knob.h"

namespace shardproof::rows {

std::vector<Knob> StrategyKnobs();
std::vector<Knob> AxisKnobs();
std::vector<Knob> PlaceKnobs();  // order of axes, ranks of the world
std::vector<Knob> StepKnobs();
std::vector<Knob> DtypeKnobs();   // on the wire and in memory
std::vector<Knob> MemoryKnobs();  // buckets, units, what is computed again
std::vector<Knob> OptimizerKnobs();
std::vector<Knob> WatchKnobs();  // norms, steps that are skipped, limits; and the script
std::vector<Knob> ModelKnobs();
std::vector<Knob> ModelOptionKnobs();
std::vector<Knob> MoeKnobs();
std::vector<Knob> ScheduleKnobs();
std::vector<Knob> ScheduleOptionKnobs();
std::vector<Knob> MuonKnobs();
std::vector<Knob> LayerWiseKnobs();

}  // namespace shardproof::rows
