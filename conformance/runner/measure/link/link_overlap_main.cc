// link_overlap: what ci/overlap runs under mpirun, half of the ranks on each of two hosts: prints
// the table of overlap_table.h. Exit status: 0; 2 it could not be measured; 3 usage.
//   link_overlap [--rounds N] [--again N] [--steps N] [--ratio R]... [--engine TEXT] [--tiny]
//   [--svg FILE]
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>

#include "conformance/runner/measure/link/link_overlap.h"

namespace shardproof {
namespace {

OverlapListener Printer(const OverlapOptions& options) {
  OverlapListener listener;
  listener.on_link = [options](const LinkCost& link) {
    std::printf(
        "the link: %.0f us an operation, %.1f MB/s\n"
        "medians of %d rounds of %d steps (least to most); the bound: compute, other work and the "
        "ends of communication, or all of communication, whichever is longer\n%s",
        link.latency_us, 1 / link.us_per_byte, options.rounds, options.steps,
        OverlapHeader().c_str());
    std::fflush(stdout);
  };
  listener.on_row = [](const OverlapRow& row) {
    std::fputs(OverlapLine(row).c_str(), stdout);
    std::fflush(stdout);
  };
  return listener;
}

void Conclude(const OverlapReport& report, const std::string& svg) {
  std::printf("of the kernels at most %.1f %% took longer than they were to last\n",
              100 * report.late);
  if (svg.empty()) return;
  std::ofstream file(svg);
  file << OverlapDrawing(report.rows);
  if (!file.flush()) throw std::runtime_error("--svg " + svg + ": cannot be written");
}

int Main(MpiWorld& world, int argc, char** argv) {
  OverlapOptions options;
  std::string svg;
  CLI::App app{"link_overlap: how much communication hides behind compute on a link"};
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option(
         "--again", options.again,
         "at most so many extra rounds for each engine and ratio, where steal time was more "
         "than 2 %: those with the least are reported")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--ratio", options.ratios, "communication to compute (may be given several times)")
      ->check(CLI::PositiveNumber);
  app.add_option("--engine", options.engine, "only those whose name has this in it");
  app.add_flag("--tiny", options.tiny, "small models, to try the program");
  app.add_option("--svg", svg, "the same as a drawing");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (world.rank() == 0) app.exit(error);
    return error.get_exit_code() == 0 ? 0 : 3;
  }
  if (world.size() % 2 != 0) {
    if (world.rank() == 0)
      std::cerr << "link_overlap: an even number of ranks, half on each host\n";
    return 3;
  }
  std::vector<OverlapEngine> engines;
  try {
    engines = OverlapEngines(world.size(), options);
  } catch (const std::invalid_argument& error) {  // on all ranks
    if (world.rank() == 0) std::cerr << "link_overlap: " << error.what() << "\n";
    return 3;
  }
  try {
    const OverlapReport report = MeasureOverlap(world, engines, options, Printer(options));
    if (world.rank() == 0) Conclude(report, svg);
  } catch (const std::exception& error) {
    std::cerr << "link_overlap: " << error.what() << "\n";
    std::cerr.flush();
    world.Abort(2);
  }
  return 0;
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) {
  shardproof::MpiWorld world(&argc, &argv);
  return world.Leave(shardproof::Main(world, argc, argv));
}
