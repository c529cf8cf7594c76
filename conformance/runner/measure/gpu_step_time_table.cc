// The arithmetic of gpu_step_time.h.
#include <cstdio>

#include "conformance/runner/measure/gpu_step_time.h"
#include "conformance/runner/measure/spread.h"

namespace shardproof {
namespace {

std::string Line(const std::string& name, const Spread& spread, const char* unit) {
  char text[160];
  std::snprintf(text, sizeof text, "%-52s %10.3f %-3s (%.3f to %.3f)\n", name.c_str(),
                spread.median, unit, spread.least, spread.most);
  return text;
}

template <class Figure>
Spread Over(const std::vector<StepTimeRound>& rounds, Figure figure) {
  std::vector<double> of_rounds;
  for (const StepTimeRound& round : rounds) of_rounds.push_back(figure(round));
  return SpreadOf(of_rounds);
}

double Step(const VariantTimes& times) { return Median(times.steps); }
double Bare(const VariantTimes& times) { return Median(times.bare); }
double Percent(double more, double than) { return 100 * (more / than - 1); }

}  // namespace

std::string StepTimeTable(const StepTimeOptions& options,
                          const std::vector<StepTimeRound>& rounds) {
  using R = StepTimeRound;
  const auto over = [&](auto figure) { return Over(rounds, figure); };
  const std::string all = std::to_string(options.ranks) + " ranks: ";
  std::string table =
      "figure: median of " + std::to_string(rounds.size()) + " rounds (least to most)\n";
  table += Line("1 rank: bare kernels", over([](const R& r) { return Bare(r.alone); }), "ms");
  table += Line("1 rank: step of the engine", over([](const R& r) { return Step(r.alone); }), "ms");
  table += Line("1 rank: engine's overhead over bare kernels",
                over([](const R& r) { return Percent(Step(r.alone), Bare(r.alone)); }), "%");
  table +=
      Line("1 rank: recording at level order adds",
           over([](const R& r) { return Percent(Step(r.alone_recorded), Step(r.alone)); }), "%");
  table += Line(all + "bare kernels (compute only)",
                over([](const R& r) { return Bare(r.overlapped); }), "ms");
  table += Line(all + "step without overlap", over([](const R& r) { return Step(r.apart); }), "ms");
  table +=
      Line(all + "step with overlap", over([](const R& r) { return Step(r.overlapped); }), "ms");
  table += Line(all + "exposed communication without overlap",
                over([](const R& r) { return Step(r.apart) - Bare(r.apart); }), "ms");
  table += Line(all + "exposed communication with overlap",
                over([](const R& r) { return Step(r.overlapped) - Bare(r.overlapped); }), "ms");
  table += Line(all + "step with overlap / without",
                over([](const R& r) { return Step(r.overlapped) / Step(r.apart); }), "x");
  return table;
}

}  // namespace shardproof
