// shardproof: the command.
#include <exception>
#include <iostream>

#include "conformance/runner/run_command.h"

int main(int argc, char** argv) {
  shardproof::Options options;
  int code = 3;
  if (!shardproof::ParseOptions(argc, argv, &options, &code)) return code;
  using Command = shardproof::Options::Command;
  try {
    switch (options.command) {
      case Command::kRun: return shardproof::RunCommand(options, argc, argv);
      case Command::kCheck: return shardproof::CheckCommand(options);
      case Command::kList: return shardproof::ListCommand(options);
      case Command::kReplay: return shardproof::ReplayCommand(options);
      case Command::kExplain: return shardproof::ExplainCommand(options);
      case Command::kNone: break;
    }
  } catch (const std::invalid_argument& error) {
    std::cerr << "shardproof: " << error.what() << "\n";
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "shardproof: the suite failed: " << error.what() << "\n";
    return 2;
  }
  return 3;
}
