// knob_rows.h: which knobs are there?
//
// In the order of their tokens in ids. The first row is the strategy, which every instance says.
#pragma once
#include <vector>

#include "conformance/cases/knob.h"

namespace shardproof::rows {

std::vector<Knob> GridKnobs();
std::vector<Knob> StepKnobs();
std::vector<Knob> OptimizerKnobs();
std::vector<Knob> ModelKnobs();
std::vector<Knob> MoeKnobs();
std::vector<Knob> ScheduleKnobs();
std::vector<Knob> MuonKnobs();
std::vector<Knob> LayerWiseKnobs();

}  // namespace shardproof::rows
