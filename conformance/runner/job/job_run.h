// job_run.h: what does a run of several processes do, from the engine's address to the exit code?
//
// Rank 0 asks the engine what it takes, chooses the cases, judges and reports; the others are told.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/runner/job/job_judge.h"
#include "conformance/runner/options.h"

namespace shardproof {

// What the command line asks for cannot be done: said on all processes, before any case runs.
class JobRefused : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// options.ranks: of the job. facts: lines for the report. Answers rank 0's exit code, on all.
// Throws JobRefused on all.
int RunInJob(const Options& options, JobJudge& judge, const std::vector<std::string>& facts);

}  // namespace shardproof
