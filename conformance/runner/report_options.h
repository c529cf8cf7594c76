// report_options.h: where a report is written, and commands of one: verdict, badge, waive.
#pragma once
#include <CLI/CLI.hpp>

#include "conformance/runner/options.h"

namespace shardproof {

// --report FOLDER; the name of a file, or KIND=FILE as other tools take it, is refused.
void AddReport(CLI::App* app, Options* options);

// The command that is parsed sets Options::command.
void AddReportCommands(CLI::App* app, Options* options);

}  // namespace shardproof
