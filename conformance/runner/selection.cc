#include "conformance/runner/selection.h"

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/cases/bounds.h"
#include "conformance/cases/legs.h"
#include "conformance/cases/profiles.h"
#include "conformance/runner/chosen.h"
#include "conformance/runner/dry_run.h"
#include "conformance/runner/planted.h"
#include "conformance/trace/writer.h"

namespace shardproof {

namespace {

RecordLevel LevelOf(const std::string& name) {
  if (name == "off") return RecordLevel::kOff;
  return name == "order"   ? RecordLevel::kOrder
         : name == "bytes" ? RecordLevel::kBytes
                           : RecordLevel::kDigests;
}

// The timing of a case: as asked, or one that depends on seed and case alone.
TimingPolicy TimingPolicyFor(const Options& options, const std::string& id) {
  if (!options.timing.empty()) return ParseTimingPolicy(options.timing);
  uint64_t h = options.seed;
  for (const char c : id) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  constexpr TimingPolicy kAll[] = {TimingPolicy::kRandom, TimingPolicy::kPct,
                                   TimingPolicy::kLazyComm, TimingPolicy::kLazyCompute,
                                   TimingPolicy::kEager};
  return kAll[(h >> 32) % std::size(kAll)];
}

bool TooLarge(const Case& c, const Options& options) {
  return options.ranks > 0 && MostRanks(c) > options.ranks;
}

void AddDistinct(const std::vector<Case>& more, std::vector<Case>* cases) {
  std::set<std::string> ids;
  for (const Case& c : *cases) ids.insert(Id(c));
  for (const Case& c : more) {
    if (ids.insert(Id(c)).second) cases->push_back(c);
  }
}

// Why a right engine may have other gradients with NCCL (fabric/nccl/plan.h); empty: it may not.
std::string NotForNccl(const Case& c) {
  for (const Case& leg : LegsOf(c)) {
    for (const InstanceSpec& spec : leg.instances) {
      const auto ranks = static_cast<uint32_t>(std::max(1, DpCpSize(spec)));
      if (c.illegal.empty() && spec.average_in_collective && !std::has_single_bit(ranks))
        return "it averages over " + std::to_string(ranks) + " ranks";
    }
  }
  return "";
}

// Declared before the spaces, so it ends after them, and what they took goes back to the system:
// some hundred MiB, and each process that runs an engine is a copy of one that had them.
struct GiveBack {
  ~GiveBack() { malloc_trim(0); }
};

// The fabric can run the case, and there are enough ranks.
void RequireRunnable(const Case& c, const std::string& id, const Options& options) {
  const bool killed = !c.before.empty() && c.before.front().killed;
  if (options.fabric != "dry" && MostRanks(c) > kMostRanksWithNumbers)
    throw std::invalid_argument("case " + id + ": --fabric " + options.fabric + " runs at most " +
                                std::to_string(kMostRanksWithNumbers) +
                                " ranks; --fabric dry runs more");
  if (const std::string why = NotForDry(c); options.fabric == "dry" && !why.empty())
    throw std::invalid_argument("case " + id + ": --fabric dry runs each rank alone, and " + why);
  if (const std::string why = NotForFabric(c, options); !why.empty())
    throw std::invalid_argument("case " + id + ": " + why + ": sim and mpi run such cases");
  if (options.fabric != "sim" && killed)
    throw std::invalid_argument("case " + id + ": --fabric sim alone kills saves");
  if (options.fabric != "sim" && c.starved)
    throw std::invalid_argument("case " + id + ": --fabric sim alone takes memory away");
  if (TooLarge(c, options)) {
    throw std::invalid_argument("case " + id + " needs " + std::to_string(MostRanks(c)) +
                                " ranks, there are " + std::to_string(options.ranks) +
                                ": start as many");
  }
}

}  // namespace

std::string NotForFabric(const Case& c, const Options& options) {
  const std::string why = options.fabric == "nccl" ? NotForNccl(c) : "";
  return why.empty() ? "" : why + ", and " + kAveragesOfNccl;
}

std::vector<Case> SelectCases(const Options& options, std::vector<std::string>* facts) {
  if (!options.cases.empty()) {
    std::vector<Case> cases;
    for (const std::string& id : options.cases) {
      cases.push_back(CaseOfId(id));
      RequireRunnable(cases.back(), id, options);
      // A report has one row for each case, however often and in which words it was asked.
      const auto same = [&](const Case& c) { return Id(c) == Id(cases.back()); };
      if (std::any_of(cases.begin(), cases.end() - 1, same)) cases.pop_back();
    }
    return cases;
  }
  if (options.profile == "reshard")
    throw std::invalid_argument("--profile reshard is of the fabrics sim, mpi and nccl");
  if (options.profile == "crash" || options.profile == "oom")
    throw std::invalid_argument("--profile " + options.profile + " is of the fabric sim");
  const int ranks = options.ranks > 0 ? options.ranks : kDefaultRanks;
  const GiveBack give_back;
  Spaces spaces;
  std::vector<Case> cases = Profile(options.profile, options.fabric, spaces, options.seed, ranks);
  const size_t left_out = std::erase_if(cases, [&](const Case& c) { return TooLarge(c, options); });
  if (options.profile == "smoke") AddDistinct(SmokeOfFewRanks(options.ranks), &cases);
  const size_t not_dry = std::erase_if(
      cases, [&](const Case& c) { return options.fabric == "dry" && !NotForDry(c).empty(); });
  const size_t not_nccl =
      std::erase_if(cases, [&](const Case& c) { return !NotForFabric(c, options).empty(); });
  const std::string chosen = KeepChosen(options, &cases);
  if (facts == nullptr) return cases;
  if (!chosen.empty()) facts->push_back(chosen);
  if (not_dry > 0) {
    facts->push_back("cases: " + std::to_string(not_dry) +
                     " not asked because they save, load or fail by a number, which ranks that run "
                     "alone cannot show");
  }
  if (not_nccl > 0)
    facts->push_back("cases: " + std::to_string(not_nccl) + " not asked because " +
                     kAveragesOfNccl);
  if (left_out > 0) {
    facts->push_back("cases: " + std::to_string(cases.size()) + " selected, " +
                     std::to_string(left_out) + " not asked because they need more than " +
                     std::to_string(options.ranks) + " ranks");
  }
  if (options.profile != "smoke" && chosen.empty()) {
    const std::vector<std::string> coverage =
        CoverageFacts(cases, options.profile, options.fabric, spaces, ranks);
    facts->insert(facts->end(), coverage.begin(), coverage.end());
  }
  return cases;
}

SimRunOptions SimOptionsFor(const Options& options, const std::string& id,
                            const std::string& folder) {
  SimRunOptions sim;
  sim.seed = options.seed;
  sim.policy = TimingPolicyFor(options, id);
  sim.queues = options.queues;
  sim.rank.level = LevelOf(options.level);
  sim.rank.folder = folder;
  if (!options.fault.empty()) {
    sim.rank.fault = ParseFault(options.fault);
    sim.rank.fault_struck = options.fault_struck.get();
  }
  if (!options.trace.empty()) sim.trace_folder = options.trace + "/" + TraceFolderName(id);
  return sim;
}

}  // namespace shardproof
