// command_line.h: what does the program shardproof do, whatever it was linked with?
#pragma once
#include "conformance/runner/command/run_command.h"

namespace shardproof {

// Its exit code.
int Main(int argc, char** argv, const OtherFabrics& others);

}  // namespace shardproof
