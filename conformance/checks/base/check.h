// check.h: what goes into a check and what comes out?
//
// A check is a pure function of a case and the traces of one run (and, for numerics, of what the
// oracle says). It appends findings, names the requirements that it judged, and says which it could
// not judge and why. report/verdict_rule.h says what follows from that.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof {

struct Case;           // conformance/cases/case.h
struct OracleRun;      // conformance/oracle/oracle.h
struct EngineOutcome;  // below

// One violation, with what a person needs to find it.
struct Finding {
  std::string requirement;  // "FS-14"
  int rank = -1;            // -1: not of one rank
  int64_t event = -1;       // index into the rank's trace
  int64_t begins = -1;      // the rank's earliest event that has part in it; -1: event
  int step = -1;            // entry call's step, if known
  std::string stream;       // name
  std::string operation;    // "compute layers.1.attn BWD, microbatch 0"
  std::string expected;
  std::string seen;
  std::string message;  // one sentence that says what differs, and where to look
  int32_t ended = -1;   // a rank whose early end alone brought this about; -1: none
  // Place, in its list, of the finding that it follows from; -1: it stands for itself. Filled in by
  // cause/order_by_cause.h.
  int32_t follows = -1;
};

// A requirement that nothing, or less than usual, was said about. One that does not apply to the
// case has no such row.
struct NotCheckable {
  enum class Kind : uint8_t {
    kMissing,  // evidence that the run could have given is missing: the verdict is partial
    kBounded,  // judged, but within a bound where others are judged bit for bit
    kNotAsked  // optional evidence that the engine never gives, or what this kind of run cannot
               // show
  };
  std::string requirement;
  std::string why;  // names the evidence that would allow it
  Kind kind = Kind::kMissing;
};

// What communicator kernels need of a device so that no timing hangs.
struct KernelSlots {
  std::string profiles;  // of which machines it is shown: "E0, E1, E2s: safe"
  int32_t spin = 0,
          resident = 0;  // k*: kernels that wait for peers together; that are there together
  bool exact = true;     // false: at most so many
};

struct CheckResult {
  std::vector<Finding> findings;
  std::set<std::string>
      judged;  // requirement ids for which there was evidence, with or without findings
  std::vector<NotCheckable> not_checkable;
  std::vector<std::string> notes;    // figures worth printing: k*, peaks, proofs
  std::optional<KernelSlots> slots;  // what the note of the deadlock check says, if it is safe

  void Merge(CheckResult other);
};

// How each rank's engine ended, apart from its trace.
struct EngineOutcome {
  enum class Kind {
    kOk,
    kUnsupported,
    kRejected,
    kFailed,
    kRefused,
    kAborted,
    kDied,
    kHung,
    kSuiteError
  };
  Kind kind = Kind::kOk;
  std::string call;    // entry call in which it ended
  std::string reason;  // its own words, the signal, the exception, who waits for whom
};

// One engine instance set's run of one case.
struct Run {
  const Case* spec = nullptr;             // null: foreign traces, only the case-free checks run
  std::vector<Trace> traces;              // by rank
  std::vector<EngineOutcome> outcomes;    // by rank
  std::vector<const OracleRun*> oracles;  // by instance; empty: numerics are not checkable
  // In what an engine's process was not left as it was found, "" if it was: by rank, or once where
  // all ranks ran in one process. Empty: nobody has looked.
  std::vector<std::string> left_behind = {};
};

}  // namespace shardproof
