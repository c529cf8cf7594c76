// profiles.h: which cases does a run judge?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/covering.h"
#include "conformance/cases/spaces.h"

namespace shardproof {

// Names: smoke (a handful), core (every pair of knob values), full (every triple). Fabrics: sim,
// mpi (worlds of at most 8 ranks, most of 4 or 8), nccl (those of sim with at most `ranks` ranks).
// The seed picks the rows of the covering arrays and is the seed of the cases' data. Cases are
// distinct by id; the order is fixed. Throws std::invalid_argument for other names.
std::vector<Case> Profile(const std::string& name, const std::string& fabric, Spaces& spaces,
                          uint64_t seed = 1, int32_t ranks = 2);

// What smoke has beside its own cases where there are so few ranks: its features in worlds of one,
// two and three ranks. With four ranks and more: nothing.
std::vector<Case> SmokeOfFewRanks(int32_t ranks);

// Cases that engines must refuse: those of each rule of illegal.h, in the rules' order. Data
// seed 1.
std::vector<Case> IllegalCases();
// Several engines with different grids in one world.
std::vector<Case> SharedWorldCases();
// Single situations that a covering array meets only by chance: grids of the published examples,
// worlds of one rank, odd divisors, long scripts.
std::vector<Case> NamedCases();

// Features that no one space of a covering array combines: every two of them that the
// reference has together, of which the spaces leave some out.
std::vector<Case> CrossCases();

// Single situations of mixtures of experts and their schedules: both schedules in one table.
std::vector<Case> NamedScheduleCases();
// Of profile full: long schedules, and three layers under each combination of what a schedule may
// do.
std::vector<Case> FurtherScheduleCases();
// Interleaved pipelines of replicas, with and without the overlap; pipeline_space.h combines the
// rest.
std::vector<Case> PipelineCases();

// Layer-wise engines: sizes of groups, buckets and models that a covering array meets only by
// chance.
std::vector<Case> NamedLayerWiseCases();

struct CoverageReport {
  int32_t cases = 0, legal = 0, illegal = 0, shared_world = 0;
  CoverageCount count;
  std::string of = "knob values";
  // "pairs of knob values: 1234/1234 of the possible, 56 impossible; 301 cases (...)", then missing
  // ones, if any.
  std::string Text() const;
};

// Coverage of the t-tuples of the space (space.h) with these worlds by the legal cases with one
// instance; cases with mixtures of experts and layer-wise ones are the other spaces'.
CoverageReport Coverage(const std::vector<Case>& cases, int t, const std::vector<int32_t>& worlds,
                        Spaces& spaces);
std::vector<int32_t> SpaceWorlds(const std::string& fabric);
// The same of schedule_space.h, by the cases with mixtures of experts: all worlds on sim; on mpi
// eight and four ranks, two and four of them for experts.
CoverageReport ScheduleCoverage(const std::vector<Case>& cases, int t, const std::string& fabric,
                                Spaces& spaces);
const ScheduleSpace& ScheduleSpaceOf(const std::string& fabric, Spaces& spaces);
// The same of layer_wise_space.h, by the layer-wise cases; on mpi of eight and four ranks.
CoverageReport LayerWiseCoverage(const std::vector<Case>& cases, int t, const std::string& fabric,
                                 Spaces& spaces);
const LayerWiseSpace& LayerWiseSpaceOf(const std::string& fabric, Spaces& spaces);
// The same of pipeline_space.h, by interleaved pipelines and by layer-wise cases under the 1F1B
// schedule; on mpi of eight and four ranks.
CoverageReport PipelineCoverage(const std::vector<Case>& cases, int t, const std::string& fabric,
                                Spaces& spaces);
const PipelineSpace& PipelineSpaceOf(const std::string& fabric, Spaces& spaces);
// What the report says of a core or full profile, one text for each space. On nccl of the worlds
// with at most `ranks` ranks, not all of whose pairs need be covered.
std::vector<std::string> CoverageFacts(const std::vector<Case>& cases, const std::string& profile,
                                       const std::string& fabric, Spaces& spaces,
                                       int32_t ranks = 2);

}  // namespace shardproof
