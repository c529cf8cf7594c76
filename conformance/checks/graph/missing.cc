// Runs that were ended: which operation did somebody wait for in vain?
#include "conformance/checks/graph/finding_at.h"
#include "conformance/checks/graph/matching.h"
#include "conformance/checks/graph/requirement_ids.h"
#include "conformance/checks/program/describe.h"

namespace shardproof::graph {

void ReportMissing(const Program& program, uint32_t operation, CheckResult& result) {
  const Sequence& sequence = program.SequenceOf(operation);
  const Part& waiting = program.parts[program.PartsOf(operation)[0]];
  const uint32_t position = operation - sequence.first_operation;
  const char* requirement = sequence.kind == Sequence::Kind::kCollectives ? kSameSequence
                            : sequence.kind == Sequence::Kind::kMessages  ? kMessagesPair
                            : sequence.kind == Sequence::Kind::kRegisters ? kRegisteredAlike
                                                                          : kGroupsCreatedAlike;
  Finding finding = FindingAt(requirement, program, waiting.rank, waiting.event);
  std::vector<int32_t> missing;
  for (size_t member = 0; member < sequence.parts.size(); ++member) {
    if (position >= sequence.parts[member].size()) missing.push_back(sequence.ranks[member]);
  }
  const Trace& ended = program.trace(missing[0]);
  finding.expected = finding.operation + " on " + DescribeRanks(missing);
  finding.ended = ended.rank;
  finding.seen = "the trace of rank " + std::to_string(ended.rank) + " ends before it" +
                 (ended.end_reason.empty() ? std::string() : ": " + ended.end_reason);
  finding.message = "rank " + std::to_string(waiting.rank) + " waits in " +
                    DescribeOperation(program, operation) + " for " + DescribeRanks(missing) +
                    "; " + finding.seen + ". Look at what ended rank " + std::to_string(ended.rank);
  result.findings.push_back(std::move(finding));
}

}  // namespace shardproof::graph
