#include "conformance/runner/recorded_parts.h"

#include <exception>
#include <future>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/checks/in_parts.h"
#include "conformance/checks/parts/part_reader.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/trace_cursor.h"

namespace shardproof {

namespace {

bool IsCase(const std::string& id) {
  try {
    ParseId(id);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// While one part is judged the next one is read.
class InParts {
 public:
  InParts(std::vector<std::unique_ptr<TraceCursor>> cursors, int64_t least)
      : reader_(std::move(cursors), {.least = least}) {}

  // False: whole() says why the run must be judged whole.
  bool Judge(const std::string& folder, JudgedFolder* to) {
    std::vector<Trace> part = reader_.Next();
    if (reader_.done()) {
      to->judged = JudgeTraces(std::move(part), folder);
      return true;
    }
    for (; !part.empty() && verdict_.whole().empty(); part = reader_.Next()) {
      Collect();
      // Deferred where there is no room for another thread.
      judging_ = std::async(std::launch::async | std::launch::deferred, CheckPart, std::move(part));
    }
    Collect();
    const std::string& whole = reader_.whole().empty() ? verdict_.whole() : reader_.whole();
    if (whole.empty() && Conclude(to)) return true;
    if (reader_.parts() > 0) to->whole = whole.empty() ? "an entry call did not end well" : whole;
    return false;
  }

 private:
  bool Conclude(JudgedFolder* to) {
    std::vector<Trace> ends = reader_.Ends();
    std::vector<EngineOutcome> outcomes = RecordedEnds(ends, nullptr);
    CheckResult result = std::move(verdict_).Conclude(std::move(ends), std::move(outcomes));
    if (!result.findings.empty()) return false;
    to->parts = reader_.parts();
    to->judged.verdict = VerdictOn(std::move(result));
    return true;
  }

  void Collect() {
    if (judging_.valid()) verdict_.Add(judging_.get());
  }

  parts::PartReader reader_;
  PartsVerdict verdict_;
  std::future<PartSaid> judging_;
};

}  // namespace

JudgedFolder JudgeFolder(const std::filesystem::path& folder, int64_t part_events) {
  JudgedFolder judged;
  if (part_events > 0) {
    std::vector<std::unique_ptr<TraceCursor>> cursors = OpenTraceFolder(folder);
    judged.case_id = cursors.front()->trace().case_id;
    if (!IsCase(judged.case_id) &&
        InParts(std::move(cursors), part_events).Judge(folder.string(), &judged))
      return judged;
  }
  try {
    std::vector<Trace> traces = ReadTraceFolder(folder);
    judged.case_id = traces.front().case_id;
    judged.judged = JudgeTraces(std::move(traces), folder.string());
  } catch (const TraceError& error) {  // a packed trace of too many events
    if (judged.whole.empty()) throw;
    throw std::invalid_argument(std::string(error.what()) +
                                "; nor is it judged in parts: " + judged.whole);
  }
  return judged;
}

}  // namespace shardproof
