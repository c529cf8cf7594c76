#include "conformance/checks/graph/waits.h"

#include <map>
#include <utility>

#include "conformance/checks/graph/finding_at.h"
#include "conformance/checks/graph/requirement_ids.h"

namespace shardproof::graph {

void JudgeWaits(const Program& program, CheckResult& result) {
  std::map<int32_t, bool> reported;  // by rank
  for (const Entry& entry : program.entries) {
    const Event& event = program.event(entry);
    const bool wait = entry.kind == EntryKind::kWait;
    if (!wait && event.kind != EventKind::kEventSync) continue;
    result.judged.insert(kWaitAfterRecord);
    const EdgeKind needed = wait ? EdgeKind::kEvent : EdgeKind::kSync;
    bool recorded = false;
    for (uint32_t i = entry.prerequisites.begin; i < entry.prerequisites.end; ++i) {
      recorded = recorded || program.prerequisites[i].edge() == needed;
    }
    if (recorded || !reported.try_emplace(entry.rank, true).second) continue;
    Finding finding = FindingAt(kWaitAfterRecord, program, entry.rank, entry.event);
    finding.expected =
        "a record of event " + std::to_string(event.event) + " before the wait is issued";
    finding.seen = "none";
    finding.message = "rank " + std::to_string(entry.rank) + ": " + finding.operation +
                      " before any record of it was issued orders nothing. Record the event first, "
                      "or leave the wait out";
    result.findings.push_back(std::move(finding));
  }
}

}  // namespace shardproof::graph
