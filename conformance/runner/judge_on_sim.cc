#include "conformance/runner/judge_on_sim.h"

#include <exception>
#include <utility>

#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

// A partner has no fault, checkpoints of its own, and another timing if the timing is what
// differs. A knob that an engine ignores it ignores in every run.
Run RunPartner(const Partner& partner, const RunCase& run, const SimRunOptions& options) {
  SimRunOptions other = options;
  if (other.rank.fault && other.rank.fault->action != Fault::Action::kIgnore)
    other.rank.fault.reset();
  other.rank.folder += "/partner";
  if (partner.new_timing) {
    other.seed += 1;
    other.policy =
        options.policy == TimingPolicy::kRandom ? TimingPolicy::kPct : TimingPolicy::kRandom;
  }
  const std::vector<Case> legs = LegsOf(partner.spec);
  Run made = RunLegs(legs, run, other).run;
  made.spec = &partner.spec;
  return made;
}

Verdict WithPartners(Verdict alone, const Run& first, const RunCase& run,
                     const SimRunOptions& options) {
  const std::vector<Partner> partners = PartnersToRun(*first.spec);
  std::vector<PartnerRun> runs;
  for (const Partner& partner : partners)
    runs.push_back({&partner, RunPartner(partner, run, options)});
  return JudgeWithPartners(std::move(alone), first, runs);
}

// A finding keeps the second runs from being made: were it waived, what they show would be missing.
void LeavePartnersOpen(const Case& c, CheckResult& result) {
  for (const Partner& partner : PartnersToRun(c)) {
    for (NotCheckable& row : result.not_checkable) {
      if (row.requirement != partner.requirement) continue;
      row.kind = NotCheckable::Kind::kMissing;
      row.why = "a finding of the first run kept the second one from being made";
    }
  }
}

// The legs before it have run.
Verdict JudgeLeg(const Case& c, const RunCase& run, const SimRunOptions& options, bool last,
                 const SawRun& saw) {
  const RunData data = run(c, options);
  if (!options.trace_folder.empty()) WriteTraceFolder(data.run.traces, options.trace_folder);
  if (saw) saw(c, data.run);
  if (options.rank.level == RecordLevel::kOff) return NothingRecorded();
  Verdict verdict = JudgeRun(c, data.run);
  verdict.printed = data.printed;
  const bool good = IsGood(verdict);
  if (good && last && options.rank.level >= RecordLevel::kDigests) {
    verdict = WithPartners(std::move(verdict), data.run, run, options);
  } else if (!good) {
    LeavePartnersOpen(c, verdict.result);
  }
  verdict.result.notes.insert(verdict.result.notes.end(), data.notes.begin(), data.notes.end());
  verdict.timings.push_back(data.timing_hash);
  return verdict;
}

}  // namespace

Verdict JudgeOnSim(const Case& c, const RunCase& run, const SimRunOptions& options,
                   const SawRun& saw) {
  Verdict verdict;
  try {
    const std::vector<Case> legs = LegsOf(c);
    for (size_t leg = 0; leg < legs.size(); ++leg) {
      verdict = JudgeLeg(legs[leg], run, options, leg + 1 == legs.size(), saw);
      if (IsGood(verdict)) continue;
      if (legs.size() > 1) NameLeg(leg, legs[leg], &verdict);
      break;
    }
  } catch (const std::exception& error) {
    verdict = {};
    verdict.reason = error.what();
  }
  return verdict;
}

}  // namespace shardproof
