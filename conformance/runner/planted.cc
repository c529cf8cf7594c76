#include "conformance/runner/planted.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include "conformance/cases/bounds.h"
#include "conformance/cases/knob.h"
#include "conformance/common/nearest.h"
#include "conformance/host/fault.h"

namespace shardproof {

void CheckFault(const Options& options) {
  if (options.fault.empty()) return;
  FaultStruck();
  const Fault fault = ParseFault(options.fault);
  if (fault.knob.empty()) return;
  std::vector<std::string> told;
  for (const Knob& knob : KnobTable()) {
    if (knob.told != Told::kNever) told.push_back(knob.name);
  }
  if (std::find(told.begin(), told.end(), fault.knob) != told.end()) return;
  throw std::invalid_argument("fault \"" + options.fault + "\": no engine is told of a knob \"" +
                              fault.knob + "\"; shardproof list knobs prints their names" +
                              DidYouMean(fault.knob, told));
}

void RequireRankOfFault(const Options& options, const std::vector<Case>& cases) {
  if (options.fault.empty() || cases.empty()) return;
  const int32_t rank = ParseFault(options.fault).rank;
  if (rank == Fault::kEveryRank) return;
  int most = 0;
  for (const Case& c : cases) most = std::max(most, MostRanks(c));
  if (rank >= 0 && rank < most) return;
  throw std::invalid_argument("fault \"" + options.fault + "\": no case has a rank " +
                              std::to_string(rank) + ", the last one is " +
                              std::to_string(most - 1));
}

std::atomic<bool>& FaultStruck() {
  static std::atomic<bool>* const struck = [] {
    void* memory = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return new (memory) std::atomic<bool>(false);
  }();
  return *struck;
}

void TellFault(const Options& options, bool struck, RunReport* report) {
  if (options.fault.empty() || struck) return;
  report->problems.push_back("--fault " + options.fault +
                             " never struck: no case that ran makes that call, or the knob has "
                             "that value anyway");
}

}  // namespace shardproof
