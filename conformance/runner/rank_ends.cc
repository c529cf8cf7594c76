#include "conformance/runner/rank_ends.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/fabric/in_device_work.h"
#include "conformance/runner/rank_output.h"
#include "conformance/trace/writer.h"

namespace shardproof {

namespace {

EngineOutcome OutcomeOf(const RankEnd& end) {
  using Kind = EngineOutcome::Kind;
  const std::string where = end.where.empty() ? "the run" : end.where;
  switch (end.kind) {
    case RankEnd::kReturned:
      return {};
    case RankEnd::kException:
    case RankEnd::kSignal:
    case RankEnd::kExit:
      return {Kind::kDied, where, end.detail};
    case RankEnd::kHung:
      return {Kind::kHung, where, end.detail};
    case RankEnd::kAborted:
      return {Kind::kAborted, where, end.detail};
  }
  return {};
}

bool RunsForNothing(const RankEnd& end) {
  return end.kind == RankEnd::kHung && end.detail.starts_with("without progress");
}

// Ranks that wait for one that runs for nothing are not the cause.
EngineOutcome OutcomeOf(const RankEnd& end, bool somebody_runs_for_nothing) {
  EngineOutcome outcome = OutcomeOf(end);
  if (outcome.kind != EngineOutcome::Kind::kHung || !somebody_runs_for_nothing) return outcome;
  if (RunsForNothing(end)) {
    outcome.reason = "no progress: " + end.detail;
  } else {
    outcome.kind = EngineOutcome::Kind::kAborted;
  }
  return outcome;
}

}  // namespace

RunData DataOf(const Case& c, const CaseEnd& end) {
  RunData data;
  data.run.spec = &c;
  data.deadlock = end.hang;
  data.notes = end.mismatches;
  if (end.hang && !end.hang_report.empty()) data.notes.push_back(end.hang_report);
  const bool loop = std::any_of(end.ranks.begin(), end.ranks.end(), RunsForNothing);
  for (int32_t rank = 0; rank < c.world; ++rank) {
    const RankEnd& ended = At(end.ranks, rank);
    if (ended.kind == RankEnd::kException && ended.detail.find(kInTheSuite) != std::string::npos)
      throw std::runtime_error(ended.detail);
    RankOutput output;
    output.trace.rank = rank;
    output.trace.world = c.world;
    if (ended.kind == RankEnd::kReturned && !ended.returned)
      throw std::runtime_error("rank " + std::to_string(rank) + " has returned without evidence");
    if (ended.returned) output = Unpack(ended.blob, rank, c);
    if (ended.kind != RankEnd::kReturned) output.outcome = OutcomeOf(ended, loop);
    std::string left = output.changed;
    if (!ended.left.empty()) {
      left += (left.empty() ? "" : "; ") + ended.left + " still ran when its process had ended";
    }
    data.run.left_behind.push_back(std::move(left));
    if (!ended.printed.empty()) data.printed[rank] = ended.printed;
    data.run.traces.push_back(std::move(output.trace));
    data.run.outcomes.push_back(std::move(output.outcome));
  }
  return data;
}

Verdict JudgeEnd(const Case& c, const CaseEnd& end, const Options& options) {
  try {
    if (options.level == "off") return NothingRecorded();
    RunData data = DataOf(c, end);
    if (!options.trace.empty())
      WriteTraceFolder(data.run.traces, options.trace + "/" + TraceFolderName(Id(c)));
    Verdict verdict = JudgeRun(c, data.run);
    verdict.printed = std::move(data.printed);
    verdict.result.notes.insert(verdict.result.notes.end(), data.notes.begin(), data.notes.end());
    return verdict;
  } catch (const std::exception& error) {
    Verdict verdict;
    verdict.reason = error.what();
    return verdict;
  }
}

}  // namespace shardproof
