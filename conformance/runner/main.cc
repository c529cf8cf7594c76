// shardproof: the command.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string_view>

#include "conformance/runner/run_command.h"

namespace {

// Under mpirun every process meets the same mistake: rank 0 speaks.
bool Speaks() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const char* rank = std::getenv(name);
    if (rank != nullptr) return std::string_view(rank) == "0";
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  shardproof::Options options;
  int code = 3;
  if (!Speaks()) std::cerr.setstate(std::ios::failbit);  // the parser's messages too
  if (!shardproof::ParseOptions(argc, argv, &options, &code)) return code;
  std::cerr.clear();
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
    if (Speaks()) std::cerr << "shardproof: " << error.what() << "\n";
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "shardproof: the suite failed: " << error.what() << "\n";
    return 2;
  }
  return 3;
}
