// replay_line.h: which command shows a case again?
//
// It can be pasted into a shell of any folder: the program as it was called, paths from the root,
// what a shell would take apart quoted, mpirun where ranks are processes.
#pragma once
#include <string>
#include <string_view>

#include "conformance/runner/options.h"

namespace shardproof {

// As one word of a POSIX shell.
std::string ShellWord(std::string_view text);

// Begins with the program, or with mpirun.
std::string ReplayLine(const Options& options, const std::string& case_id);
// Which command looks for a smaller case that fails as this one does; empty where there is none: on
// mpi and nccl.
std::string ShrinkLine(const Options& options, const std::string& case_id);
// Which command stops at the event of options.view in a debugger.
std::string StepLine(const Options& options, const std::string& case_id);
// Of what was found before any case.
std::string ReplayLineOfProbe(const Options& options);
// Of recorded traces, or dumps. kind: trace or flight.
std::string CheckLine(const Options& options, const std::string& kind, const std::string& folder);
// Of a case whose traces do not stay: by Options::recorded_by.
std::string RecordAgainLine(const Options& options, const std::string& case_id);

}  // namespace shardproof
