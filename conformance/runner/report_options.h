// report_options.h: commands of one report: verdict, badge, waive.
#pragma once
#include <CLI/CLI.hpp>

#include "conformance/runner/options.h"

namespace shardproof {

// The command that is parsed sets Options::command.
void AddReportCommands(CLI::App* app, Options* options);

}  // namespace shardproof
