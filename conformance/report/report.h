// report.h: what does a run of the suite say, before anybody has chosen a format?
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/checks/base/check.h"

namespace shardproof {

// verdict_rule.h says which one follows from what.
enum class Status : uint8_t {
  kPass,
  kPartial,
  kFail,
  kWaived,
  kBounded,
  kUnsupported,
  kDisabled,
  kNotCheckable,
  kSuiteError
};
const char* StatusName(Status status);

struct ReportedFinding {
  Finding finding;
  std::string waived_because;  // empty: not waived
  bool warning = false;        // of a SHOULD, without --strict
  // Where two runs differ: the command line that runs the other one's case.
  std::string partner = {};
};
// Neither waived nor a warning: it makes the run red.
bool IsOpen(const ReportedFinding& row);
// A warning that nobody waived.
bool Warns(const ReportedFinding& row);

// The row of what was found before any case, by loading the engine. No case, and not waived.
inline constexpr const char* kEngineRow = "engine";

struct CaseReport {
  std::string id;
  bool legal = true;  // an engine is expected to run it
  Status status = Status::kSuiteError;
  std::string reason;  // why unsupported, not checkable, disabled, or what failed in the suite
  std::vector<ReportedFinding> findings;
  std::vector<NotCheckable> not_checkable;
  std::vector<std::string> notes;
  std::vector<std::string> judged;  // requirement ids
  std::string replay;               // command line that runs it again
  std::string shrink = {};          // one that makes it smaller, or empty
  double seconds = -1;              // that it took; -1: not known
  // What the engine printed, by rank; -1: while no rank's code ran.
  std::map<int32_t, std::string> printed = {};
  // Of findings, by place: JSON (html/drawing.h).
  std::map<size_t, std::string> drawings = {};
};

struct RunReport {
  std::string impl, fabric, profile;  // "-": no profile was asked
  std::string asked;                  // "2 cases": what was asked instead of a profile, or empty
  std::string shard;                  // "2/4": of --shard, or empty
  std::vector<std::string> select, exclude;  // globs over the ids of the profile's cases
  // Other options that decide which cases there are or how they run: "--level order".
  std::vector<std::string> options;
  std::string fault;   // that was planted: of --fault, or empty
  std::string engine;  // "my engine 2.1", as it calls itself, or empty
  std::string began;   // "2026-11-25T02:10:00Z", or empty
  uint64_t seed = 1;
  std::string assurance = "observed";  // how the evidence came about
  std::vector<CaseReport> cases;
  std::vector<std::string> facts;     // coverage and the like, printed at the end
  std::vector<std::string> problems;  // of files that the user gave: each turns the run red
  // Why cases that belong to the run were not judged (--time-budget), or empty.
  std::string cut_short = {};
  // Of a shard in which the engine takes no legal case: one of another shard that it takes, or
  // empty.
  std::string taken_elsewhere = {};
  bool allow_partial = false;  // the user excuses what could not be judged
  bool strict = false;         // a broken SHOULD is no warning
  bool whole = true;           // all cases of the profile, or of the traces, were asked
  bool all_findings = false;   // those that follow from others are told too
};

// The sentence of a requirement.
using Sentence = std::function<std::string(std::string_view id)>;

// "my engine 2.1, lib:./libddp.so on sim, profile core, seed 1, assurance observed": what was run.
std::string RunText(const RunReport& report);

std::map<Status, int> Count(const RunReport& report);
// How many requirements were judged in some case, within a bound too; how many were open in some
// case for want of evidence; how many were open in none, but not asked in some. One that is judged
// in one case may be open or not asked in another.
struct RequirementCounts {
  size_t judged = 0, missing = 0, not_asked = 0;
};
RequirementCounts CountRequirements(const RunReport& report);
// Cases with a warning, by the requirement that warns.
std::map<std::string, int> CountWarnings(const RunReport& report);
// "conformant: 312 pass, 14 unsupported", "conformant where judged: 3 pass, 2 partial" or "not
// conformant: 3 fail, 309 pass"; then ", 2 cases with warnings" if there are any.
std::string LastLine(const RunReport& report);

}  // namespace shardproof
