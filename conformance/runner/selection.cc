#include "conformance/runner/selection.h"

#include <iterator>

#include "conformance/cases/profiles.h"
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

}  // namespace

std::vector<Case> SelectCases(const Options& options, std::vector<std::string>* facts) {
  if (!options.cases.empty()) {
    std::vector<Case> cases;
    for (const std::string& id : options.cases) cases.push_back(ParseId(id));
    return cases;
  }
  const int ranks = options.ranks > 0 ? options.ranks : kDefaultRanks;
  Spaces spaces;
  std::vector<Case> cases = Profile(options.profile, options.fabric, spaces, options.seed, ranks);
  if (facts != nullptr && options.profile != "smoke") {
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
  if (!options.fault.empty()) sim.rank.fault = ParseFault(options.fault);
  if (!options.trace.empty()) sim.trace_folder = options.trace + "/" + TraceFolderName(id);
  return sim;
}

}  // namespace shardproof
