#include "conformance/runner/judge_on_sim.h"

#include <exception>
#include <utility>

#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

// A partner has no fault, checkpoints of its own, and another timing if the timing is what
// differs.
Run RunPartner(const Partner& partner, const Plugin& plugin, const SimRunOptions& options) {
  SimRunOptions other = options;
  other.rank.fault.reset();
  other.rank.folder += "/partner";
  if (partner.new_timing) {
    other.seed += 1;
    other.policy =
        options.policy == TimingPolicy::kRandom ? TimingPolicy::kPct : TimingPolicy::kRandom;
  }
  return RunOnSim(partner.spec, MakeModels(partner.spec), plugin, other).run;
}

Verdict WithPartners(Verdict alone, const Run& run, const Plugin& plugin,
                     const SimRunOptions& options) {
  const std::vector<Partner> partners = PartnersToRun(*run.spec);
  std::vector<PartnerRun> runs;
  for (const Partner& partner : partners)
    runs.push_back({&partner, RunPartner(partner, plugin, options)});
  return JudgeWithPartners(std::move(alone), run, runs);
}

}  // namespace

Verdict JudgeOnSim(const Case& c, const Plugin& plugin, const SimRunOptions& options) {
  Verdict verdict;
  try {
    const RunData data = RunOnSim(c, MakeModels(c), plugin, options);
    if (!options.trace_folder.empty()) WriteTraceFolder(data.run.traces, options.trace_folder);
    if (options.rank.level == RecordLevel::kOff) return NothingRecorded();
    verdict = JudgeRun(c, data.run);
    const bool good = verdict.outcome == Outcome::kPass || verdict.outcome == Outcome::kPartial;
    if (good && options.rank.level >= RecordLevel::kDigests) {
      verdict = WithPartners(std::move(verdict), data.run, plugin, options);
    }
    verdict.result.notes.insert(verdict.result.notes.end(), data.notes.begin(), data.notes.end());
    verdict.timings.push_back(data.timing_hash);
  } catch (const std::exception& error) {
    verdict = {};
    verdict.reason = error.what();
  }
  return verdict;
}

}  // namespace shardproof
