#include <iterator>
#include <stdexcept>

#include "conformance/cases/knob_rows.h"

namespace shardproof {
namespace {

std::vector<Knob> AllKnobs() {
  std::vector<Knob> all;
  for (std::vector<Knob>& some : std::vector{
           rows::StrategyKnobs(), rows::AxisKnobs(), rows::PlaceKnobs(), rows::StepKnobs(),
           rows::DtypeKnobs(), rows::MemoryKnobs(), rows::OptimizerKnobs(), rows::WatchKnobs(),
           rows::ModelKnobs(), rows::ModelOptionKnobs(), rows::MoeKnobs(), rows::ScheduleKnobs(),
           rows::ScheduleOptionKnobs(), rows::MuonKnobs(), rows::LayerWiseKnobs()}) {
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace

const std::vector<Knob>& KnobTable() {
  static const std::vector<Knob> kTable = AllKnobs();  // never written again
  return kTable;
}

const Knob& KnobNamed(const std::string& name) {
  for (const Knob& knob : KnobTable()) {
    if (knob.name == name) return knob;
  }
  throw std::invalid_argument("no knob " + name);
}

}  // namespace shardproof
