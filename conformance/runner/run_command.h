// run_command.h: how does a list of cases become a report?
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/report/console.h"
#include "conformance/report/report.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/nccl_kit.h"
#include "conformance/runner/options.h"
#include "conformance/runner/scratch_folder.h"

namespace shardproof {

// The cases that the options select, legal and illegal, and what they cover. Throws
// std::invalid_argument for unknown ids or profiles.
std::vector<Case> SelectCases(const Options& options, std::vector<std::string>* facts);

// How the case runs on sim: everything that the options leave open depends on seed and case id
// alone.
SimRunOptions SimOptionsFor(const Options& options, const std::string& id,
                            const std::string& folder);

// A verdict as the report shows it.
CaseReport ReportOf(const Case& c, Verdict verdict, const Options& options);

Sentence Sentences();

// Applies waivers, writes the report folder, prints the end; answers the exit code.
int FinishReport(RunReport& report, const Options& options, Console& console);

// What a program was linked with, beside the simulator; null: nothing.
struct OtherFabrics {
  std::function<int(const Options& options, int argc, char** argv)> mpi;
  std::function<int(const Options& options, const NcclKit& kit, int argc, char** argv)>
      nccl_under_mpi;
  NcclKit nccl;
};

// Each answers the program's exit code. Under mpi RunCommand runs on every rank of mpirun; rank 0
// reports.
int RunCommand(const Options& options, const OtherFabrics& others, int argc, char** argv);
int CheckCommand(const Options& options);
int ListCommand(const Options& options);
int ReplayCommand(const Options& options);
int PlanCommand(const Options& options);
int ExplainCommand(const Options& options);

}  // namespace shardproof
