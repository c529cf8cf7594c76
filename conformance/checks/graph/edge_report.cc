// Which synchronisations of a recorded run are needed, and why not the others?
//
//   edge_report TRACE_FOLDER [RANK]
//
// One line for each wait and host sync (of one rank, or of all): the race that its loss causes, or
// the proof that others give the order. Ends with 1 if an edge could not be judged.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>

#include "conformance/checks/graph/implied_edge.h"
#include "conformance/trace/reader.h"

namespace shardproof {
namespace {

const char* Word(EdgeVerdict::Kind kind) {
  switch (kind) {
    case EdgeVerdict::Kind::kNeeded:
      return "needed";
    case EdgeVerdict::Kind::kImplied:
      return "implied";
    case EdgeVerdict::Kind::kUnused:
      return "unused";
    case EdgeVerdict::Kind::kCovered:
      return "covered";
    default:
      return "not checkable";
  }
}

int Report(const std::string& folder, int rank) {
  const std::vector<Trace> traces = ReadTraceFolder(folder);
  std::map<std::string, int> counts;
  for (const SyncEdge& edge : FindSyncEdges(traces)) {
    if (rank >= 0 && edge.rank != rank) continue;
    const EdgeVerdict verdict = JudgeEdge(traces, edge);
    ++counts[Word(verdict.kind)];
    std::printf("%s: %s: %s\n", Word(verdict.kind), verdict.edge.c_str(), verdict.proof.c_str());
  }
  for (const auto& [word, count] : counts) std::printf("%d %s\n", count, word.c_str());
  return counts.contains("not checkable") ? 1 : 0;
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: edge_report TRACE_FOLDER [RANK]\n");
    return 3;
  }
  try {
    return shardproof::Report(argv[1], argc > 2 ? std::atoi(argv[2]) : -1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "edge_report: %s\n", error.what());
    return 2;
  }
}
