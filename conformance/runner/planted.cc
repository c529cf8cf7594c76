#include "conformance/runner/planted.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "conformance/cases/bounds.h"
#include "conformance/cases/knob.h"
#include "conformance/common/nearest.h"
#include "conformance/host/fault.h"

namespace shardproof {

namespace {

// Processes that fork from this one share it.
std::shared_ptr<std::atomic<bool>> SharedFlag() {
  using Flag = std::atomic<bool>;
  void* memory =
      mmap(nullptr, sizeof(Flag), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {new (memory) Flag(false), [](Flag* flag) { munmap(flag, sizeof(Flag)); }};
}

void RequireKnob(const std::string& knob, const std::string& fault) {
  std::vector<std::string> told;
  for (const Knob& one : KnobTable()) {
    if (one.told != Told::kNever) told.push_back(one.name);
  }
  if (std::find(told.begin(), told.end(), knob) != told.end()) return;
  throw std::invalid_argument("fault \"" + fault + "\": no engine is told of a knob \"" + knob +
                              "\"; shardproof list knobs prints their names" +
                              DidYouMean(knob, told));
}

}  // namespace

Options WithFault(Options options) {
  if (options.fault.empty()) return options;
  const Fault fault = ParseFault(options.fault);
  if (!fault.knob.empty()) RequireKnob(fault.knob, options.fault);
  options.fault_struck = SharedFlag();
  return options;
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

bool FaultStruck(const Options& options) {
  return options.fault_struck != nullptr && *options.fault_struck;
}

std::string WhyNotStruck(const Options& options, bool struck) {
  if (options.fault.empty() || struck) return "";
  return "--fault " + options.fault +
         " never struck: no case that ran makes that call, or the knob has that value anyway";
}

void TellFault(const Options& options, bool struck, RunReport* report) {
  if (const std::string why = WhyNotStruck(options, struck); !why.empty())
    report->problems.push_back(why);
}

}  // namespace shardproof
