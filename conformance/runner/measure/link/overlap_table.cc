#include "conformance/runner/measure/link/overlap_table.h"

#include <algorithm>
#include <cstdio>

namespace shardproof {
namespace {

template <class... Values>
std::string Format(const char* format, Values... values) {
  char text[400];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

template <class Figure>
Spread Over(const std::vector<OverlapTimes>& rounds, Figure figure) {
  std::vector<double> of_rounds;
  for (const OverlapTimes& round : rounds) of_rounds.push_back(figure(round));
  return SpreadOf(of_rounds);
}

double SumOf(const StepCosts& costs) { return costs.compute + costs.communication + costs.other; }

double Hidden(const OverlapTimes& times) {
  const double sum = SumOf(times.costs);
  return 100 * (sum - times.with) / (sum - BoundOf(times.costs));
}

bool CanHide(const OverlapTimes& times) { return SumOf(times.costs) > 1.01 * BoundOf(times.costs); }

std::string Cell(const Spread& spread) {
  return Format("%5.2f (%4.2f to %4.2f)", spread.median, spread.least, spread.most);
}

std::string ToTenths(const Spread& spread) {
  return Format("%.1f (%.1f to %.1f)", spread.median, spread.least, spread.most);
}

std::string Percent(const std::optional<Spread>& spread) {
  if (!spread) return "-";
  return Format("%3.0f (%3.0f to %3.0f)", spread->median, spread->least, spread->most);
}

constexpr double kLeft = 250, kRight = 690, kTop = 40, kLine = 44;

class Axis {
 public:
  explicit Axis(const std::vector<OverlapRow>& rows) {
    for (const OverlapRow& row : rows) most_ = std::max({most_, row.baseline.most, row.with.most});
  }
  double At(double ratio) const {
    return kLeft + (kRight - kLeft) * (ratio - least_) / (most_ * 1.02 - least_);
  }
  double most() const { return most_; }

 private:
  double least_ = 0.9, most_ = 1.2;
};

std::string Mark(const Axis& axis, const Spread& spread, double y, const char* colour,
                 const char* what) {
  return Format(
             "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
             "stroke-width=\"3\"/>\n",
             axis.At(spread.least), y, axis.At(spread.most), y, colour) +
         Format(
             "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\"><title>%s: %.2f</title>"
             "</circle>\n",
             axis.At(spread.median), y, colour, what, spread.median);
}

}  // namespace

double BoundOf(const StepCosts& costs) {
  return std::max(costs.compute + costs.other + costs.ends, costs.communication);
}

bool AnotherRound(const std::vector<OverlapTimes>& rounds, int count, int again) {
  const auto calm =
      std::ranges::count_if(rounds, [](const OverlapTimes& round) { return round.steal <= kCalm; });
  return calm < count && static_cast<int>(rounds.size()) < count + again;
}

std::vector<OverlapTimes> Calmest(std::vector<OverlapTimes> rounds, int count) {
  std::stable_sort(rounds.begin(), rounds.end(),
                   [](const OverlapTimes& a, const OverlapTimes& b) { return a.steal < b.steal; });
  rounds.resize(std::min(rounds.size(), static_cast<size_t>(count)));
  return rounds;
}

OverlapRow RowOf(const std::string& engine, const std::vector<OverlapTimes>& rounds) {
  using T = OverlapTimes;
  OverlapRow row;
  row.engine = engine;
  row.to_compute = Over(rounds, [](const T& t) { return t.costs.communication / t.costs.compute; });
  row.baseline = Over(rounds, [](const T& t) { return t.baseline / BoundOf(t.costs); });
  row.with = Over(rounds, [](const T& t) { return t.with / BoundOf(t.costs); });
  if (std::all_of(rounds.begin(), rounds.end(), CanHide)) row.hidden = Over(rounds, Hidden);
  row.prediction = Over(rounds, [](const T& t) { return t.predicted / t.with; });
  row.steal = Over(rounds, [](const T& t) { return t.steal; });
  return row;
}

std::string OverlapHeader() {
  return Format("%-30s %9s  %-22s %-22s %-20s %-22s %s\n", "engine", "comm/comp",
                "baseline / bound", "with / bound", "hidden, %", "predicted / measured",
                "steal, %");
}

std::string OverlapLine(const OverlapRow& row) {
  return Format("%-30s %9.2f  %-22s %-22s %-20s %-22s %s\n", row.engine.c_str(),
                row.to_compute.median, Cell(row.baseline).c_str(), Cell(row.with).c_str(),
                Percent(row.hidden).c_str(), Cell(row.prediction).c_str(),
                ToTenths(row.steal).c_str());
}

std::string OverlapDrawing(const std::vector<OverlapRow>& rows) {
  const Axis axis(rows);
  const double bottom = kTop + kLine * static_cast<double>(rows.size());
  std::string svg = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"%.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<title>Step time over its bound, baseline and with overlap</title>\n"
      "<text x=\"250\" y=\"20\"><tspan fill=\"#b3261e\">baseline</tspan> and <tspan "
      "fill=\"#1a7f37\">with</tspan> overlap: step / bound, median, least to most</text>\n",
      bottom + 40);
  for (double ratio = 1; ratio <= axis.most() * 1.02; ratio += 0.25) {
    svg +=
        Format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
               axis.At(ratio), kTop - 8, axis.At(ratio), bottom, ratio == 1 ? "#57606a" : "#ddd");
    svg += Format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.2f</text>\n",
                  axis.At(ratio), bottom + 18, ratio);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = kTop + kLine * (static_cast<double>(i) + 0.4);
    svg += Format("<text x=\"8\" y=\"%.1f\">%s, %.2f</text>\n", y + 4, rows[i].engine.c_str(),
                  rows[i].to_compute.median);
    svg += Mark(axis, rows[i].baseline, y - 7, "#b3261e", "baseline");
    svg += Mark(axis, rows[i].with, y + 7, "#1a7f37", "with");
  }
  return svg + "</svg>\n";
}

}  // namespace shardproof
