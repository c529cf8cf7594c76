// overlap_table.h: how are measured steps told, as ratios to a step that hides all that it can?
//
// The bound of a step: its compute, its other work and what stands at the ends of its communication
// (StepCosts), or all of its communication, whichever is longer. It is of the operations that the
// engine with overlap issues, and an estimate: operations that share the link may take less than
// one after another, and some of what stands at the ends may hide.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "conformance/runner/measure/link/link_costs.h"
#include "conformance/runner/measure/spread.h"

namespace shardproof {

// One engine at one ratio of communication to compute, in one round; microseconds.
struct OverlapTimes {
  StepCosts costs;
  double baseline = 0, with = 0;  // a step, measured: without and with overlap
  double predicted = 0;           // a step with overlap, from its trace
  double steal = 0;               // percent of processor time, idle time included
};

// Of the rounds.
struct OverlapRow {
  std::string engine;
  Spread to_compute;             // communication / compute
  Spread baseline, with;         // measured / bound
  std::optional<Spread> hidden;  // percent of what could hide; nothing: nothing could
  Spread prediction;             // predicted / measured, with overlap
  Spread steal;                  // percent
};

double BoundOf(const StepCosts& costs);

// A round is calm if its steal time is no more, in percent.
constexpr double kCalm = 2;
// Is another round to be measured: until so many are calm, `again` more than that at most?
bool AnotherRound(const std::vector<OverlapTimes>& rounds, int count, int again);
// So many of them at most: those with the least steal time. How long steps took has no say in it.
std::vector<OverlapTimes> Calmest(std::vector<OverlapTimes> rounds, int count);

// REQUIRES: a round.
OverlapRow RowOf(const std::string& engine, const std::vector<OverlapTimes>& rounds);

// A line each: medians, with the least and the most.
std::string OverlapHeader();
std::string OverlapLine(const OverlapRow& row);
// A drawing: both steps over the bound.
std::string OverlapDrawing(const std::vector<OverlapRow>& rows);

}  // namespace shardproof
