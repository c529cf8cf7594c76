// case_end.h: how did a case under mpirun end, on each rank?
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

// How long a piece of device work lasts from its begin, in microseconds: called behind its body, in
// the rank's child, one call at a time, with its name and the time that the body took. Meanwhile
// other work goes on, as beside a kernel of a device. Four times stall_seconds without any other
// progress are a rank that is stuck.
using LastsUs = std::function<double(std::string_view what, double took_us)>;
// Whether the body of such work computes on a thread of its own: communication, and what is on
// other streams, then goes on meanwhile. Called in the child.
using RunsApart = std::function<bool(std::string_view what)>;

struct MpiOptions {
  double stall_seconds = 5;    // of running without any progress: then a rank counts as stuck
  double limit_seconds = 600;  // of a whole case, whatever the progress
  uint64_t arena_bytes = uint64_t{1}
                         << 30;  // address space a rank; pages cost nothing until they are written
  LastsUs lasts_us = nullptr;    // null: as long as the bodies take
  RunsApart apart = nullptr;     // null: none; bodies run between messages
  bool looks_steadily = false;   // for what moves: every 100 us, however long nothing has
  std::function<void()> waiting = nullptr;  // called again and again while the case runs
  // What the rank that this process has begun does, in the caller's words; called when it has died
  // or does not go on.
  std::function<std::string()> where = nullptr;
};

// How one rank of a case ended.
struct RankEnd {
  enum Kind : int32_t {
    kReturned,   // rank_main returned by itself
    kException,  // it, or a body, threw
    kSignal,     // the process crashed
    kExit,       // the process left before rank_main had returned
    kHung,       // it could not go on, and neither could anybody else
    kAborted     // ended because of another rank
  };
  Kind kind = kReturned;
  std::string detail;     // names the rank's state, what it waited for, or the cause
  bool returned = false;  // blob is what rank_main returned; possible for kHung and kAborted too
  std::string blob;
  std::string printed = {};  // to standard output and error
  std::string left = {};     // processes that it has left behind: "a process (sleep)"
  std::string where = {};    // MpiOptions::where; empty: nobody says, or it had returned
};
const char* ToText(RankEnd::Kind kind);

struct CaseEnd {
  bool hang = false;
  std::string hang_report;  // who waits for whom
  // By rank: complete on rank 0; elsewhere only the own entry is filled in.
  std::vector<RankEnd> ranks;
  // Operations that met without being alike; complete on rank 0.
  std::vector<std::string> mismatches;
};

}  // namespace shardproof
