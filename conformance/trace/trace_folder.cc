// Which traces lie in a folder, as text or packed?
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "conformance/trace/packed_trace.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/trace_cursor.h"
#include "conformance/trace/trace_file.h"
#include "conformance/trace/trace_lines.h"

namespace shardproof {
namespace {

// Paths by rank; a rank without a file is refused.
std::vector<std::filesystem::path> TraceFiles(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::pair<int, std::filesystem::path>> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const int rank = RankOfTraceFile(entry.path().filename().string());
    if (rank >= 0) found.emplace_back(rank, entry.path());
  }
  if (error) throw TraceError(folder.string(), 0, "cannot be read: " + error.message());
  if (found.empty())
    throw TraceError(folder.string(), 0, "there is no trace in it (trace.00000.jsonl and so on)");
  std::sort(found.begin(), found.end());
  std::vector<std::filesystem::path> paths;
  for (auto& [rank, path] : found) {
    const auto due = static_cast<int>(paths.size());
    if (rank > due)
      throw TraceError(folder.string(), 0,
                       "the trace of rank " + std::to_string(due) + " is missing");
    if (rank < due)
      throw TraceError(folder.string(), 0, "two files for rank " + std::to_string(rank));
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace

Trace ReadTraceFile(const std::filesystem::path& path) {
  const std::string bytes = ReadTraceText(path);
  return IsPackedFile(path.filename().string()) ? UnpackTraceFile(bytes, path.string())
                                                : ReadTrace(bytes, path.string());
}

namespace {

bool HasTraces(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  return !error && std::any_of(begin(entries), end(entries), [](const auto& entry) {
    return RankOfTraceFile(entry.path().filename().string()) >= 0;
  });
}

}  // namespace

std::vector<std::filesystem::path> RunsIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> runs;
  std::error_code error;
  if (!HasTraces(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.is_directory(error) && HasTraces(entry.path())) runs.push_back(entry.path());
    }
    std::sort(runs.begin(), runs.end());
  }
  if (runs.empty()) runs.push_back(folder);
  return runs;
}

namespace {

// A file that is not of the run that the others are of. first: rank 0's.
void RefuseStranger(const std::filesystem::path& path, const Trace& trace, size_t rank,
                    const Trace& first) {
  const auto refuse = [&](const std::string& what) { throw TraceError(path.string(), 1, what); };
  if (static_cast<size_t>(trace.rank) != rank) {
    refuse("the header says rank " + std::to_string(trace.rank) + ", the file's name rank " +
           std::to_string(rank));
  }
  if (trace.case_id != first.case_id) {
    refuse("case \"" + trace.case_id + "\", but rank 0's is \"" + first.case_id +
           "\": the folder is mixed");
  }
  if (trace.world != first.world) {
    refuse("world of " + std::to_string(trace.world) + ", but rank 0's has " +
           std::to_string(first.world) + ": the folder is mixed");
  }
}

void RefuseOtherWorld(const std::filesystem::path& folder, const Trace& first, size_t ranks) {
  const auto world = static_cast<size_t>(first.world);
  if (ranks < world)
    throw TraceError(folder.string(), 0,
                     "the trace of rank " + std::to_string(ranks) + " of " + std::to_string(world) +
                         " is missing");
  if (ranks > world)
    throw TraceError(folder.string(), 0,
                     "more traces than the world of " + std::to_string(world) + " has ranks");
}

}  // namespace

std::vector<Trace> ReadTraceFolder(const std::filesystem::path& folder) {
  std::vector<Trace> traces;
  for (const std::filesystem::path& path : TraceFiles(folder)) {
    traces.push_back(ReadTraceFile(path));
    RefuseStranger(path, traces.back(), traces.size() - 1, traces.front());
  }
  RefuseOtherWorld(folder, traces.front(), traces.size());
  return traces;
}

std::vector<std::unique_ptr<TraceCursor>> OpenTraceFolder(const std::filesystem::path& folder) {
  std::vector<std::unique_ptr<TraceCursor>> cursors;
  for (const std::filesystem::path& path : TraceFiles(folder)) {
    cursors.push_back(OpenTrace(path));
    cursors.back()->Begin();
    RefuseStranger(path, cursors.back()->trace(), cursors.size() - 1, cursors.front()->trace());
  }
  RefuseOtherWorld(folder, cursors.front()->trace(), cursors.size());
  return cursors;
}

}  // namespace shardproof
