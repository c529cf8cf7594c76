// options.h: what did the user ask for on the command line?
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shardproof {

// What replay and show tell of a run; without any of it, the neighbourhood of the first finding.
struct ReplayView {
  int64_t around = -1;  // neighbourhood of this event of `rank` (0 if -1)
  int rank = -1;        // of this rank alone
  std::string stream;   // on this stream alone, by name
  std::string only;     // empty, findings, collectives or memory
  bool whole = false;   // all events
  bool step = false;    // stop in a debugger at the event
};

inline constexpr int kMostRandomFailures = 10;

struct Options {
  enum class Command {
    kRun,
    kCheck,
    kList,
    kProbe,
    kReplay,
    kShow,
    kShrink,
    kEdges,
    kPlan,
    kExplain,
    kExport,
    kConvert,
    kDiff,
    kVerdict,
    kBadge,
    kWaive,
    kNone
  };
  Command command = Command::kNone;
  std::string program;  // as it was called

  std::string impl = "builtin:reference";
  std::string profile = "core";
  bool profile_given = false;                // on the command line
  std::vector<std::string> cases;            // ids; not empty: instead of a profile
  std::vector<std::string> select, exclude;  // globs over ids of the profile's cases
  std::string shard;                         // "2/4": every fourth case from the second on
  bool list = false;                         // run: print the ids, run nothing
  std::string last_failed;                   // report whose failed cases are asked, or empty
  int max_fail = 0;                          // not 0: no further case when so many have failed;
                                             // of --random kMostRandomFailures, unless given
  double time_budget = 0;                    // not 0: no further case after so many seconds
  std::string fabric = "sim";
  int random = 0;        // not 0: so many random cases instead of a profile
  std::string supports;  // file of what the engine takes, or empty
  std::string waivers;   // file, or empty
  std::string report;    // folder, or empty
  std::string trace;     // folder to write traces to, or empty
  uint64_t seed = 1;     // of cases and timings
  std::string timing;    // empty: chosen by the seed, case by case
  int queues = 0;        // sim: hardware queues that a rank's streams share; 0: one for each stream
  int timings = 1;       // sim: how many timings of each case must give the same results
  std::string level = "digests";
  std::string fault;                                // empty, or as in host/faulty.h
  std::shared_ptr<std::atomic<bool>> fault_struck;  // planted.h; null without a fault
  double stall_seconds = 5;
  int ranks = 0;  // nccl: rank processes, 0: kDefaultRanks; mpi: those that mpirun started
  double case_seconds = 120;   // nccl: of one case, whatever the progress
  std::string gemm = "fp32";   // nccl: what products are computed with
  int jobs = 0;                // 0: one worker per core
  bool allow_partial = false;  // what was not judged for want of evidence leaves the exit code 0
  bool strict = false;         // a broken SHOULD fails its case, as a MUST does
  bool all_findings = false;   // those that follow from others one by one, not only counted
  bool verbose = false, quiet = false;
  std::string color = "auto";
  bool in_process = false;  // replay: for a debugger
  ReplayView view;          // replay, show
  int rank = 0;             // plan, edges: whose
  int64_t step = 0;         // plan: of which train step

  std::string output;            // probe, trace export, badge, waive: file to write, or empty
                                 // trace convert: the folder
  bool as_text = false;          // trace convert: not packed
  int64_t part_events = 20'000;  // check: least events of a part of a long run; 0: judged whole
  int64_t most_mib = 0, most_seconds = 0;  // check: of memory and processor time; 0: no limit
  std::string recorded_by;  // check: a command that records the case again whose ID follows it
  std::string later;        // diff: the report that is compared with `target`
  bool markdown = false;    // diff: for a comment on a pull request
  std::string target;       // list: cases or requirements; explain: requirement id; check,
                            // show: trace:DIR
};

inline constexpr int kDefaultRanks = 2;  // of nccl: as many as share one GPU without further care

// Returns true when the program should go on; otherwise *exit_code is what it ends with (help: 0,
// usage: 3).
bool ParseOptions(int argc, char** argv, Options* options, int* exit_code);

}  // namespace shardproof
