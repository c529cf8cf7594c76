// gpu_bandwidth: prints the table of gpu_bandwidth.h. Exit status: 0; 2 it could not be measured.
//   gpu_bandwidth [--ranks N] [--rounds N] [--sizes BYTES...]
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "conformance/runner/measure/gpu_bandwidth.h"

int main(int argc, char** argv) {
  shardproof::BandwidthOptions options;
  CLI::App app{"gpu_bandwidth: bus bandwidth of collectives through the nccl fabric"};
  app.add_option("--ranks", options.ranks, "rank processes on this machine")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--sizes", options.sizes, "bytes of the larger side of a collective")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    std::vector<std::string> facts;
    const auto rows = shardproof::RunBandwidth(options, shardproof::CudaKit(), &facts);
    for (const std::string& fact : facts) std::cout << fact << "\n";
    std::cout << shardproof::BandwidthTable(options, rows);
  } catch (const std::exception& error) {
    std::cerr << "gpu_bandwidth: " << error.what() << "\n";
    return 2;
  }
}
