// link_overlap.h: how are the steps of overlap_table.h measured, in a job of ranks on two hosts?
//
// Kernels take a stated time (MpiOptions::lasts_us) and no processor, so that ranks on few cores
// compute side by side; communication is real, over whatever joins the hosts.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/fabric/mpi/mpi_world.h"
#include "conformance/runner/measure/link/overlap_table.h"

namespace shardproof {

struct OverlapOptions {
  int rounds = 3, steps = 3;                   // steps that count, behind one that does not
  int again = 0;                               // more at most, until enough are calm
  std::vector<double> ratios{0.5, 0.7, 0.95};  // communication to compute
  std::string engine;                          // of those whose name has it in it
  bool tiny = false;                           // small models, to try the program
};

struct OverlapEngine {
  std::string name;
  Case baseline, with;  // with: overlap
};
// The reference: FSDP with a twin and without, the 1F1B overlap of expert exchanges, layer-wise
// Adam and Muon. The baseline of FSDP, whose reductions always run beside backward, gathers no unit
// ahead; that of 1F1B is the sequential schedule.
// Throws std::invalid_argument that lists the names if options.engine is in none.
std::vector<OverlapEngine> OverlapEngines(int ranks, const OverlapOptions& options);

struct OverlapReport {
  LinkCost link;
  std::vector<OverlapRow> rows;
  // Largest share in a run of the nodes whose own work took longer than they were to last.
  double late = 0;
};

// Called on rank 0.
struct OverlapListener {
  std::function<void(const LinkCost& link)> on_link;
  std::function<void(const OverlapRow& row)> on_row;  // as it ends
};

// Collective; the report is rank 0's. Throws std::exception, on some ranks or on all, with the case
// and what a rank said: the job cannot go on.
OverlapReport MeasureOverlap(MpiWorld& world, const std::vector<OverlapEngine>& engines,
                             const OverlapOptions& options, const OverlapListener& listener);

}  // namespace shardproof
