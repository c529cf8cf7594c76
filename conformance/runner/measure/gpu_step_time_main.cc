// gpu_step_time: prints the figures of gpu_step_time.h for the reference engine. Exit status: 0; 2
// it could not be measured.
//   gpu_step_time [--ranks N] [--rounds N] [--steps N] [--gemm fp32|tf32|bf16] [--tokens N]
//   [--tiny]
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "conformance/runner/measure/gpu_step_time.h"

int main(int argc, char** argv) {
  shardproof::StepTimeOptions options;
  CLI::App app{
      "gpu_step_time: step time, exposed communication, the engine's overhead and the recording's, "
      "on "
      "GPUs"};
  app.add_option("--ranks", options.ranks, "rank processes on this machine")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--gemm", options.gemm)
      ->check(CLI::IsMember({"fp32", "tf32", "bf16"}))
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "of a rank and step: more compute, not more bytes")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_flag("--tiny", options.tiny, "a model of a few thousand parameters, to try the program");
  CLI11_PARSE(app, argc, argv);
  try {
    const shardproof::Plugin plugin("builtin:reference");
    std::vector<std::string> facts;
    const auto rounds = shardproof::RunStepTimes(options, shardproof::CudaKit(), plugin, &facts);
    for (const std::string& fact : facts) std::cout << fact << "\n";
    std::cout << shardproof::ParameterCount(shardproof::StepTimeCase(options, 1, true))
              << " parameters, " << options.tokens << " tokens a rank and step, " << options.steps
              << " steps a round after " << options.warmup << "\n"
              << shardproof::StepTimeTable(options, rounds);
  } catch (const std::exception& error) {
    std::cerr << "gpu_step_time: " << error.what() << "\n";
    return 2;
  }
}
